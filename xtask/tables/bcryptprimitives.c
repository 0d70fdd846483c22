#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count)
{
    while (count > 0) {
        ULONG part = count > 0x40000000 ? 0x40000000 : (ULONG)count;
        if (!RtlGenRandom(bytes, part))
            return FALSE;
        bytes += part;
        count -= part;
    }
    return TRUE;
}
