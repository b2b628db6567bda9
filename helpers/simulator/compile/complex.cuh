// What <cupy/complex.cuh> gives a kernel of CuPy's: complex<float> and complex<double>. They are those
// of CUDA's own standard library here, in which exp(z), abs(z) and the like are found by their
// argument.
#pragma once

#include <cuda/std/complex>

template <typename T> using complex = cuda::std::complex<T>;
