// A computenetwork.dll for where Windows' own is not: it answers what containerd asks when it makes, opens and
// deletes the network namespace of a sandbox (github.com/Microsoft/hcsshim/hcn), and keeps nothing.
#include <windows.h>
#include <objbase.h>

static LONG made;

static HRESULT nothing(WCHAR **error)
{
	if (error)
		*error = NULL;
	return S_OK;
}

// The caller frees what it is given by CoTaskMemFree.
static WCHAR *given(const char *text)
{
	int n = lstrlenA(text) + 1;
	WCHAR *copy = CoTaskMemAlloc(n * sizeof(WCHAR));
	for (int i = 0; i < n; i++)
		copy[i] = text[i];
	return copy;
}

#define HCN __declspec(dllexport) HRESULT WINAPI

// A namespace's handle is its number, and its GUID ends in that.
HCN HcnCreateNamespace(GUID *id, LPCWSTR settings, HANDLE *h, WCHAR **error)
{
	*h = (HANDLE)(ULONG_PTR)InterlockedIncrement(&made);
	return nothing(error);
}

HCN HcnOpenNamespace(GUID *id, HANDLE *h, WCHAR **error)
{
	*h = (HANDLE)(ULONG_PTR)(id->Data4[7] | id->Data4[6] << 8);
	return nothing(error);
}

HCN HcnQueryNamespaceProperties(HANDLE h, LPCWSTR query, WCHAR **properties, WCHAR **error)
{
	char text[200];
	wsprintfA(text, "{\"ID\":\"786877ce-0bdc-4ff7-a58a-0000%08x\",\"NamespaceId\":1,\"Type\":\"Host\",\"SchemaVersion\":{\"Major\":2,\"Minor\":0}}",
		(unsigned)(ULONG_PTR)h);
	*properties = given(text);
	return nothing(error);
}

HCN HcnDeleteNamespace(GUID *id, WCHAR **error) { return nothing(error); }
HCN HcnCloseNamespace(HANDLE h) { return S_OK; }
HCN HcnModifyNamespace(HANDLE h, LPCWSTR settings, WCHAR **error) { return nothing(error); }

static HRESULT none(WCHAR **list, WCHAR **error)
{
	*list = given("[]");
	return nothing(error);
}

HCN HcnEnumerateNamespaces(LPCWSTR query, WCHAR **list, WCHAR **error) { return none(list, error); }
HCN HcnEnumerateNetworks(LPCWSTR query, WCHAR **list, WCHAR **error) { return none(list, error); }
HCN HcnEnumerateEndpoints(LPCWSTR query, WCHAR **list, WCHAR **error) { return none(list, error); }

BOOL WINAPI DllMainCRTStartup(HINSTANCE module, DWORD reason, LPVOID reserved) { return TRUE; }
