# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory served by the library that forward.sh builds, asked for as a CUDA runtime would: through
cuGetProcAddress.  forward_test.py LIBRARY"""
import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1])
u64, vp, sz = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t
def ok(r, what):
    assert r == 0, f"{what}: {r}"
ok(lib.cuInit(0), "cuInit")
dev, ctx = ctypes.c_int(), vp()
ok(lib.cuDeviceGet(ctypes.byref(dev), 0), "cuDeviceGet")
ok(lib.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), dev), "retain")
ok(lib.cuCtxSetCurrent(ctx), "current")
get = lib.cuGetProcAddress_v2
def entry(name, *args):
    p, status = vp(), ctypes.c_int()
    ok(get(name.encode(), ctypes.byref(p), 13000, u64(0), ctypes.byref(status)), name)
    return ctypes.CFUNCTYPE(ctypes.c_uint, *args)(p.value)
alloc = entry("cuMemAllocAsync", ctypes.POINTER(u64), sz, vp)
free = entry("cuMemFreeAsync", u64, vp)
fill = entry("cuMemsetD8", u64, ctypes.c_ubyte, sz)
read = entry("cuMemcpyDtoH", vp, u64, sz)
a, b, small = u64(), u64(), u64()
ok(alloc(ctypes.byref(a), 3 << 20, None), "alloc")
ok(fill(a, 7, 3 << 20), "fill")
buf = ctypes.create_string_buffer(3 << 20)
ok(read(buf, a, 3 << 20), "read")
assert buf.raw == b"\7" * (3 << 20)
ok(alloc(ctypes.byref(small), 4096, None), "small")
ok(free(a, None), "free")
ok(alloc(ctypes.byref(b), 3 << 20, None), "again")
assert a.value == b.value, "a block that was freed is used again"
ok(free(small, None), "free small")
