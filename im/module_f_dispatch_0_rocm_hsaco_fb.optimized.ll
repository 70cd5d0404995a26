; To reproduce the .optimized.ll from the .linked.ll, run:
; opt -S -mtriple=amdgpu9.42-amd-amdhsa -mcpu=gfx942 --passes='verify,memprof-remove-attributes,annotation2metadata,forceattrs,inferattrs,coro-early,function<eager-inv>(ee-instrument<>,lower-expect,simplifycfg<bonus-inst-threshold=1;no-forward-switch-cond;no-switch-range-to-icmp;no-switch-to-arithmetic;no-switch-to-lookup;keep-loops;no-hoist-common-insts;no-hoist-loads-stores-with-cond-faulting;no-sink-common-insts;speculate-blocks;simplify-cond-branch;no-speculate-unpredictables>,sroa<modify-cfg>,early-cse<>),openmp-opt,amdgpu-printf-runtime-binding,ipsccp,called-value-propagation,globalopt,function<eager-inv>(mem2reg,instcombine<max-iterations=1;no-verify-fixpoint>,amdgpu-usenative,amdgpu-simplifylib,amdgpu-uniform-intrinsic-combine,simplifycfg<bonus-inst-threshold=1;no-forward-switch-cond;switch-range-to-icmp;no-switch-to-arithmetic;no-switch-to-lookup;keep-loops;no-hoist-common-insts;no-hoist-loads-stores-with-cond-faulting;no-sink-common-insts;speculate-blocks;simplify-cond-branch;no-speculate-unpredictables>),always-inline,require<globals-aa>,function(invalidate<aa>),require<profile-summary>,cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,openmp-opt-cgscc,function(amdgpu-promote-kernel-arguments,infer-address-spaces,amdgpu-lower-kernel-attributes,amdgpu-promote-alloca-to-vector),function<eager-inv;no-rerun>(sroa<modify-cfg>,early-cse<memssa>,speculative-execution<only-if-divergent-target>,jump-threading,correlated-propagation,jump-table-to-switch,simplifycfg<bonus-inst-threshold=1;no-forward-switch-cond;switch-range-to-icmp;no-switch-to-arithmetic;no-switch-to-lookup;keep-loops;no-hoist-common-insts;no-hoist-loads-stores-with-cond-faulting;no-sink-common-insts;speculate-blocks;simplify-cond-branch;no-speculate-unpredictables>,instcombine<max-iterations=1;no-verify-fixpoint>,aggressive-instcombine,libcalls-shrinkwrap,amdgpu-usenative,amdgpu-simplifylib,amdgpu-uniform-intrinsic-combine,tailcallelim,simplifycfg<bonus-inst-threshold=1;no-forward-switch-cond;switch-range-to-icmp;no-switch-to-arithmetic;no-switch-to-lookup;keep-loops;no-hoist-common-insts;no-hoist-loads-stores-with-cond-faulting;no-sink-common-insts;speculate-blocks;simplify-cond-branch;no-speculate-unpredictables>,reassociate,constraint-elimination,loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,loop-rotate<header-duplication;no-prepare-for-lto;no-check-exit-count>,licm<allowspeculation>,simple-loop-unswitch<no-nontrivial;trivial>),simplifycfg<bonus-inst-threshold=1;no-forward-switch-cond;switch-range-to-icmp;no-switch-to-arithmetic;no-switch-to-lookup;keep-loops;no-hoist-common-insts;no-hoist-loads-stores-with-cond-faulting;no-sink-common-insts;speculate-blocks;simplify-cond-branch;no-speculate-unpredictables>,instcombine<max-iterations=1;no-verify-fixpoint>,loop(loop-idiom,indvars,extra-simple-loop-unswitch-passes,loop-deletion,loop-unroll-full),sroa<modify-cfg>,vector-combine,mldst-motion<no-split-footer-bb>,gvn<>,sccp,bdce,instcombine<max-iterations=1;no-verify-fixpoint>,amdgpu-usenative,amdgpu-simplifylib,amdgpu-uniform-intrinsic-combine,dfa-jump-threading,jump-threading,correlated-propagation,adce,memcpyopt,dse,move-auto-init,loop-mssa(licm<allowspeculation>),coro-elide,infer-address-spaces,simplifycfg<bonus-inst-threshold=1;no-forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;no-switch-to-lookup;keep-loops;hoist-common-insts;no-hoist-loads-stores-with-cond-faulting;sink-common-insts;speculate-blocks;simplify-cond-branch;no-speculate-unpredictables>,instcombine<max-iterations=1;no-verify-fixpoint>,amdgpu-usenative,amdgpu-simplifylib,amdgpu-uniform-intrinsic-combine),function-attrs,function(require<should-not-run-function-passes>),coro-split,coro-annotation-elide)),deadargelim,coro-cleanup,globalopt,globaldce,elim-avail-extern,rpo-function-attrs,recompute-globalsaa,function<eager-inv>(drop-unnecessary-assumes,float2int,lower-constant-intrinsics,loop(loop-rotate<header-duplication;no-prepare-for-lto;check-exit-count>,loop-deletion,loop-interchange),loop-distribute,inject-tli-mappings,loop-vectorize<no-interleave-forced-only;no-vectorize-forced-only;>,drop-unnecessary-assumes<drop-deref>,infer-alignment,loop-load-elim,instcombine<max-iterations=1;no-verify-fixpoint>,simplifycfg<bonus-inst-threshold=1;forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;switch-to-lookup;no-keep-loops;hoist-common-insts;no-hoist-loads-stores-with-cond-faulting;sink-common-insts;speculate-blocks;simplify-cond-branch;no-speculate-unpredictables>,slp-vectorizer,vector-combine,instcombine<max-iterations=1;no-verify-fixpoint>,loop-unroll<O2>,transform-warning,sroa<preserve-cfg;aggregate-to-vector>,infer-alignment,instcombine<max-iterations=1;no-verify-fixpoint>,loop-mssa(licm<allowspeculation>),alignment-from-assumptions,infer-address-spaces,loop-sink,instsimplify,div-rem-pairs,mergeicmps,expand-memcmp,tailcallelim,simplifycfg<bonus-inst-threshold=1;no-forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;no-switch-to-lookup;keep-loops;no-hoist-common-insts;hoist-loads-stores-with-cond-faulting;no-sink-common-insts;speculate-blocks;simplify-cond-branch;speculate-unpredictables>),alloc-token,amdgpu-attributor,globaldce,constmerge,cg-profile,rel-lookup-table-converter,lower-comment-string,function(annotation-remarks),verify' <.linked.ll>
; The flag '-S' is to emit LLVMIR.
; The behavior of some passes depends on '-mtriple' and '-mcpu'.

; ModuleID = 'f_dispatch_0'
source_filename = "f_dispatch_0"
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-p10:32:32-p11:32:32-p12:32:32-p13:32:32-p14:32:32-p15:32:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgpu9.42-amd-amdhsa"

@__shared_memory___0 = private unnamed_addr addrspace(3) global [7 x [6 x half]] undef, align 16
@__shared_memory__.0 = internal unnamed_addr addrspace(3) global <7 x half> undef, align 16

; Function Attrs: alwaysinline mustprogress norecurse nounwind willreturn
define amdgpu_kernel void @f_dispatch_0_matmul_like_100x2x7_f16xf16xf32(ptr addrspace(1) inreg noalias noundef nonnull readonly align 16 captures(none) %0, ptr addrspace(1) inreg noalias noundef nonnull readonly align 16 captures(none) %1, ptr addrspace(1) inreg noalias nofree noundef nonnull writeonly align 16 captures(none) %2) local_unnamed_addr #0 !reqd_work_group_size !1 {
  %4 = tail call range(i32 0, 64) i32 @llvm.amdgcn.workitem.id.x()
  call void @llvm.assume(i1 true) [ "align"(ptr addrspace(1) %0, i64 64) ]
  call void @llvm.assume(i1 true) [ "align"(ptr addrspace(1) %1, i64 64) ]
  %5 = tail call ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1.i32(ptr addrspace(1) nonnull %1, i16 0, i32 28, i32 159744)
  call void @llvm.assume(i1 true) [ "align"(ptr addrspace(1) %2, i64 64) ]
  %6 = tail call ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1.i32(ptr addrspace(1) nonnull %2, i16 0, i32 400, i32 159744)
  %7 = tail call range(i32 0, 100) i32 @llvm.amdgcn.workgroup.id.x()
  %8 = icmp eq i32 %4, 0
  br i1 %8, label %.lr.ph, label %.preheader

.lr.ph:                                           ; preds = %3
  %9 = tail call ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1.i32(ptr addrspace(1) nonnull %0, i16 0, i32 1400, i32 159744)
  %.idx5 = mul nuw nsw i32 %7, 14
  %10 = getelementptr i8, ptr addrspace(7) %9, i32 %.idx5
  %11 = load <7 x half>, ptr addrspace(7) %10, align 2
  store <7 x half> %11, ptr addrspace(3) @__shared_memory__.0, align 16
  br label %.preheader

.preheader:                                       ; preds = %.lr.ph, %3
  %12 = icmp samesign ult i32 %4, 7
  br i1 %12, label %.lr.ph6, label %._crit_edge

.lr.ph6:                                          ; preds = %.preheader
  %.idx3 = shl nuw nsw i32 %4, 2
  %13 = getelementptr i8, ptr addrspace(7) %5, i32 %.idx3
  %14 = load <2 x half>, ptr addrspace(7) %13, align 2
  %.idx4 = mul nuw nsw i32 %4, 12
  %15 = getelementptr i8, ptr addrspace(3) @__shared_memory___0, i32 %.idx4
  store <2 x half> %14, ptr addrspace(3) %15, align 4
  br label %._crit_edge

._crit_edge:                                      ; preds = %.lr.ph6, %.preheader
  fence syncscope("workgroup") release, !mmra !0
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire, !mmra !0
  %16 = icmp samesign ult i32 %4, 2
  br i1 %16, label %.lr.ph8, label %._crit_edge9

.lr.ph8:                                          ; preds = %._crit_edge
  %17 = load <7 x half>, ptr addrspace(3) @__shared_memory__.0, align 16
  %18 = fpext <7 x half> %17 to <7 x float>
  %.idx = shl nuw nsw i32 %7, 2
  %19 = getelementptr i8, ptr addrspace(7) %6, i32 %.idx
  %20 = getelementptr [2 x i8], ptr addrspace(3) @__shared_memory___0, i32 %4
  %21 = load <1 x half>, ptr addrspace(3) %20, align 2
  %22 = getelementptr i8, ptr addrspace(3) %20, i32 12
  %23 = load <1 x half>, ptr addrspace(3) %22, align 2
  %24 = getelementptr i8, ptr addrspace(3) %20, i32 24
  %25 = load <1 x half>, ptr addrspace(3) %24, align 2
  %26 = shufflevector <1 x half> %25, <1 x half> poison, <7 x i32> <i32 0, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %27 = getelementptr i8, ptr addrspace(3) %20, i32 36
  %28 = load <1 x half>, ptr addrspace(3) %27, align 2
  %29 = shufflevector <1 x half> %28, <1 x half> poison, <7 x i32> <i32 0, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %30 = getelementptr i8, ptr addrspace(3) %20, i32 48
  %31 = load <1 x half>, ptr addrspace(3) %30, align 2
  %32 = shufflevector <1 x half> %31, <1 x half> poison, <7 x i32> <i32 0, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %33 = getelementptr i8, ptr addrspace(3) %20, i32 60
  %34 = load <1 x half>, ptr addrspace(3) %33, align 2
  %35 = shufflevector <1 x half> %34, <1 x half> poison, <7 x i32> <i32 0, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %36 = getelementptr i8, ptr addrspace(3) %20, i32 72
  %37 = load <1 x half>, ptr addrspace(3) %36, align 2
  %38 = shufflevector <1 x half> %37, <1 x half> poison, <7 x i32> <i32 0, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %39 = shufflevector <1 x half> %21, <1 x half> %23, <7 x i32> <i32 0, i32 1, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %40 = shufflevector <7 x half> %39, <7 x half> %26, <7 x i32> <i32 0, i32 1, i32 7, i32 poison, i32 poison, i32 poison, i32 poison>
  %41 = shufflevector <7 x half> %40, <7 x half> %29, <7 x i32> <i32 0, i32 1, i32 2, i32 7, i32 poison, i32 poison, i32 poison>
  %42 = shufflevector <7 x half> %41, <7 x half> %32, <7 x i32> <i32 0, i32 1, i32 2, i32 3, i32 7, i32 poison, i32 poison>
  %43 = shufflevector <7 x half> %42, <7 x half> %35, <7 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 7, i32 poison>
  %44 = shufflevector <7 x half> %43, <7 x half> %38, <7 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 7>
  %45 = fpext <7 x half> %44 to <7 x float>
  %46 = fmul <7 x float> %18, %45
  %47 = tail call float @llvm.vector.reduce.fadd.v7f32(float 0.000000e+00, <7 x float> %46)
  %48 = fptrunc float %47 to half
  %49 = insertelement <1 x half> poison, half %48, i64 0
  %50 = getelementptr [2 x i8], ptr addrspace(7) %19, i32 %4
  store <1 x half> %49, ptr addrspace(7) %50, align 2
  br label %._crit_edge9

._crit_edge9:                                     ; preds = %.lr.ph8, %._crit_edge
  fence syncscope("workgroup") release, !mmra !0
  tail call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire, !mmra !0
  ret void
}

; Function Attrs: alwaysinline mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.amdgcn.workitem.id.x() #1

; Function Attrs: alwaysinline mustprogress nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write)
declare void @llvm.assume(i1 noundef) #2

; Function Attrs: alwaysinline mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1.i32(ptr addrspace(1) readnone, i16, i32, i32) #3

; Function Attrs: alwaysinline mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.amdgcn.workgroup.id.x() #1

; Function Attrs: alwaysinline convergent mustprogress nocallback nofree nounwind willreturn
declare void @llvm.amdgcn.s.barrier() #4

; Function Attrs: alwaysinline mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.vector.reduce.fadd.v7f32(float, <7 x float>) #3

attributes #0 = { alwaysinline mustprogress norecurse nounwind willreturn "amdgpu-agpr-alloc"="0" "amdgpu-flat-work-group-size"="64,64" "amdgpu-no-cluster-id-x" "amdgpu-no-cluster-id-y" "amdgpu-no-cluster-id-z" "amdgpu-no-completion-action" "amdgpu-no-default-queue" "amdgpu-no-dispatch-id" "amdgpu-no-dispatch-ptr" "amdgpu-no-flat-scratch-init" "amdgpu-no-heap-ptr" "amdgpu-no-hostcall-ptr" "amdgpu-no-implicitarg-ptr" "amdgpu-no-lds-kernel-id" "amdgpu-no-multigrid-sync-arg" "amdgpu-no-queue-ptr" "amdgpu-no-workgroup-id-x" "amdgpu-no-workgroup-id-y" "amdgpu-no-workgroup-id-z" "amdgpu-no-workitem-id-x" "amdgpu-no-workitem-id-y" "amdgpu-no-workitem-id-z" "amdgpu-no-wwm" "uniform-work-group-size" }
attributes #1 = { alwaysinline mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { alwaysinline mustprogress nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write) }
attributes #3 = { alwaysinline mustprogress nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #4 = { alwaysinline convergent mustprogress nocallback nofree nounwind willreturn }

!llvm.module.flags = !{!2, !3, !4}

!0 = !{!"amdgpu-synchronize-as", !"local"}
!1 = !{i32 64, i32 1, i32 1}
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!4 = !{i32 7, !"amdgpu.buffer.oob.mode", i32 1}
