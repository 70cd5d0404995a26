; ModuleID = 'f_dispatch_0'
source_filename = "f_dispatch_0"
target datalayout = "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-p9:192:256:256:32-p10:32:32-p11:32:32-p12:32:32-p13:32:32-p14:32:32-p15:32:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
target triple = "amdgpu9.42-amd-amdhsa"

@__shared_memory___0 = private addrspace(3) global [7 x [6 x half]] undef, align 16
@__shared_memory__ = private addrspace(3) global [1 x [11 x half]] undef, align 16

; Function Attrs: alwaysinline
define amdgpu_kernel void @f_dispatch_0_matmul_like_100x2x7_f16xf16xf32(ptr addrspace(1) inreg noalias noundef nonnull readonly align 16 %0, ptr addrspace(1) inreg noalias noundef nonnull readonly align 16 %1, ptr addrspace(1) inreg noalias noundef nonnull align 16 %2) #0 !reqd_work_group_size !1 {
  %4 = call range(i32 0, 64) i32 @llvm.amdgcn.workitem.id.x()
  %5 = sext i32 %4 to i64
  call void @llvm.assume(i1 true) [ "align"(ptr addrspace(1) %0, i64 64) ]
  %6 = call ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1.i32(ptr addrspace(1) %0, i16 0, i32 1400, i32 159744)
  call void @llvm.assume(i1 true) [ "align"(ptr addrspace(1) %1, i64 64) ]
  %7 = call ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1.i32(ptr addrspace(1) %1, i16 0, i32 28, i32 159744)
  call void @llvm.assume(i1 true) [ "align"(ptr addrspace(1) %2, i64 64) ]
  %8 = call ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1.i32(ptr addrspace(1) %2, i16 0, i32 400, i32 159744)
  %9 = call range(i32 0, 100) i32 @llvm.amdgcn.workgroup.id.x()
  %10 = sext i32 %9 to i64
  %11 = trunc i64 %5 to i32
  br label %12

12:                                               ; preds = %15, %3
  %13 = phi i32 [ %20, %15 ], [ %11, %3 ]
  %14 = icmp slt i32 %13, 1
  br i1 %14, label %15, label %21

15:                                               ; preds = %12
  %16 = mul i64 %10, 7
  %17 = add i64 %16, 0
  %18 = getelementptr half, ptr addrspace(7) %6, i64 %17
  %19 = load <7 x half>, ptr addrspace(7) %18, align 2
  store <7 x half> %19, ptr addrspace(3) @__shared_memory__, align 2
  %20 = add i32 %13, 64
  br label %12

21:                                               ; preds = %24, %12
  %22 = phi i32 [ %33, %24 ], [ %11, %12 ]
  %23 = icmp slt i32 %22, 7
  br i1 %23, label %24, label %34

24:                                               ; preds = %21
  %25 = zext i32 %22 to i64
  %26 = mul i64 %25, 2
  %27 = add i64 %26, 0
  %28 = getelementptr half, ptr addrspace(7) %7, i64 %27
  %29 = load <2 x half>, ptr addrspace(7) %28, align 2
  %30 = mul i64 %25, 6
  %31 = add i64 %30, 0
  %32 = getelementptr half, ptr addrspace(3) @__shared_memory___0, i64 %31
  store <2 x half> %29, ptr addrspace(3) %32, align 2
  %33 = add i32 %22, 64
  br label %21

34:                                               ; preds = %21
  fence syncscope("workgroup") release, !mmra !0
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire, !mmra !0
  br label %35

35:                                               ; preds = %38, %34
  %36 = phi i32 [ %85, %38 ], [ %11, %34 ]
  %37 = icmp slt i32 %36, 2
  br i1 %37, label %38, label %86

38:                                               ; preds = %35
  %39 = zext i32 %36 to i64
  %40 = load <7 x half>, ptr addrspace(3) @__shared_memory__, align 2
  %41 = add i64 0, %39
  %42 = getelementptr half, ptr addrspace(3) @__shared_memory___0, i64 %41
  %43 = load <1 x half>, ptr addrspace(3) %42, align 2
  %44 = add i64 6, %39
  %45 = getelementptr half, ptr addrspace(3) @__shared_memory___0, i64 %44
  %46 = load <1 x half>, ptr addrspace(3) %45, align 2
  %47 = add i64 12, %39
  %48 = getelementptr half, ptr addrspace(3) @__shared_memory___0, i64 %47
  %49 = load <1 x half>, ptr addrspace(3) %48, align 2
  %50 = add i64 18, %39
  %51 = getelementptr half, ptr addrspace(3) @__shared_memory___0, i64 %50
  %52 = load <1 x half>, ptr addrspace(3) %51, align 2
  %53 = add i64 24, %39
  %54 = getelementptr half, ptr addrspace(3) @__shared_memory___0, i64 %53
  %55 = load <1 x half>, ptr addrspace(3) %54, align 2
  %56 = add i64 30, %39
  %57 = getelementptr half, ptr addrspace(3) @__shared_memory___0, i64 %56
  %58 = load <1 x half>, ptr addrspace(3) %57, align 2
  %59 = add i64 36, %39
  %60 = getelementptr half, ptr addrspace(3) @__shared_memory___0, i64 %59
  %61 = load <1 x half>, ptr addrspace(3) %60, align 2
  %62 = extractelement <1 x half> %43, i64 0
  %63 = extractelement <1 x half> %46, i64 0
  %64 = extractelement <1 x half> %49, i64 0
  %65 = extractelement <1 x half> %52, i64 0
  %66 = extractelement <1 x half> %55, i64 0
  %67 = extractelement <1 x half> %58, i64 0
  %68 = extractelement <1 x half> %61, i64 0
  %69 = insertelement <7 x half> poison, half %62, i64 0
  %70 = insertelement <7 x half> %69, half %63, i64 1
  %71 = insertelement <7 x half> %70, half %64, i64 2
  %72 = insertelement <7 x half> %71, half %65, i64 3
  %73 = insertelement <7 x half> %72, half %66, i64 4
  %74 = insertelement <7 x half> %73, half %67, i64 5
  %75 = insertelement <7 x half> %74, half %68, i64 6
  %76 = fpext <7 x half> %40 to <7 x float>
  %77 = fpext <7 x half> %75 to <7 x float>
  %78 = fmul <7 x float> %76, %77
  %79 = call float @llvm.vector.reduce.fadd.v7f32(float 0.000000e+00, <7 x float> %78)
  %80 = fptrunc float %79 to half
  %81 = insertelement <1 x half> poison, half %80, i32 0
  %82 = mul i64 %10, 2
  %83 = add i64 %82, %39
  %84 = getelementptr half, ptr addrspace(7) %8, i64 %83
  store <1 x half> %81, ptr addrspace(7) %84, align 2
  %85 = add i32 %36, 64
  br label %35

86:                                               ; preds = %35
  fence syncscope("workgroup") release, !mmra !0
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire, !mmra !0
  ret void
}

; Function Attrs: alwaysinline nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.amdgcn.workitem.id.x() #1

; Function Attrs: alwaysinline nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write)
declare void @llvm.assume(i1 noundef) #2

; Function Attrs: alwaysinline nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare ptr addrspace(7) @llvm.amdgcn.make.buffer.rsrc.p7.p1.i32(ptr addrspace(1) readnone, i16, i32, i32) #3

; Function Attrs: alwaysinline nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.amdgcn.workgroup.id.x() #1

; Function Attrs: alwaysinline convergent nocallback nofree nounwind willreturn
declare void @llvm.amdgcn.s.barrier() #4

; Function Attrs: alwaysinline nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.vector.reduce.fadd.v7f32(float, <7 x float>) #3

attributes #0 = { alwaysinline "amdgpu-flat-work-group-size"="64,64" "uniform-work-group-size" }
attributes #1 = { alwaysinline nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { alwaysinline nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write) }
attributes #3 = { alwaysinline nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #4 = { alwaysinline convergent nocallback nofree nounwind willreturn }

!llvm.module.flags = !{!2, !3, !4}

!0 = !{!"amdgpu-synchronize-as", !"local"}
!1 = !{i32 64, i32 1, i32 1}
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 1, !"amdhsa_code_object_version", i32 500}
!4 = !{i32 7, !"amdgpu.buffer.oob.mode", i32 1}
