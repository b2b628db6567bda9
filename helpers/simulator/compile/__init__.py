"""CUDA C to PTX by NVRTC, and what its log and the source say."""
