//! Visitors over the tensors of an operation, and the macro that declares an operation with them.

use crate::tensor_id::TensorId;

/// A field of an operation that refers to tensors: one, at most one, or several.
pub(crate) trait TensorField {
    fn visit(&self, visit: &mut dyn FnMut(TensorId));
    fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId);
}

impl TensorField for TensorId {
    fn visit(&self, visit: &mut dyn FnMut(TensorId)) {
        visit(*self);
    }
    fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId) {
        *self = to(*self);
    }
}

impl TensorField for Option<TensorId> {
    fn visit(&self, visit: &mut dyn FnMut(TensorId)) {
        self.iter().copied().for_each(visit);
    }
    fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId) {
        *self = self.map(to);
    }
}

impl TensorField for Vec<TensorId> {
    fn visit(&self, visit: &mut dyn FnMut(TensorId)) {
        self.iter().copied().for_each(visit);
    }
    fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId) {
        for id in self {
            *id = to(*id);
        }
    }
}

/// Implements the visitors of one operation's struct.
macro_rules! visitors {
    ($name:ident, reads { $($input:ident),* }, writes { $($output:ident),* }) => {
        impl $name {
            /// Calls `visit` with the field's name and the tensor for every tensor that is read.
            pub fn for_each_input(&self, visit: &mut dyn FnMut(&'static str, TensorId)) {
                $($crate::visit::TensorField::visit(&self.$input, &mut |id| visit(stringify!($input), id));)*
            }

            /// Calls `visit` with the field's name and the tensor for every tensor that is written.
            pub fn for_each_output(&self, visit: &mut dyn FnMut(&'static str, TensorId)) {
                $($crate::visit::TensorField::visit(&self.$output, &mut |id| visit(stringify!($output), id));)*
            }

            /// Replaces every tensor by the result of `to` for it.
            pub fn renumber(&mut self, to: &mut dyn FnMut(TensorId) -> TensorId) {
                $($crate::visit::TensorField::renumber(&mut self.$input, to);)*
                $($crate::visit::TensorField::renumber(&mut self.$output, to);)*
            }
        }
    };
}
pub(crate) use visitors;

/// Declares the struct of an operation from the fields it reads, those it writes and its
/// attributes.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident
        reads { $($input:ident: $input_ty:ty),* $(,)? }
        writes { $($output:ident: $output_ty:ty),* $(,)? }
        attributes { $($(#[$attr_doc:meta])* $attr:ident: $attr_ty:ty),* $(,)? }) => {
        $(#[$doc])*
        #[expect(missing_docs, reason = "tensor fields carry the schema's names and mean what the operation's docs say")]
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $(pub $input: $input_ty,)*
            $(pub $output: $output_ty,)*
            $($(#[$attr_doc])* pub $attr: $attr_ty,)*
        }
        $crate::visit::visitors!($name, reads { $($input),* }, writes { $($output),* });
    };
}
pub(crate) use operation;
