package etw

// FileOptions configure RecordFile.
type FileOptions struct {
	// File is an absolute path, replaced at the end. Only administrators and the system may read it.
	File  string
	Begun func()
	// Missing is called for a provider that could not be enabled.
	Missing func(provider string, err error)
}

// Losses counts what Windows lost.
type Losses struct {
	Events, Buffers uint64
	// Ended means that Windows, for example because the file was full, or another user stopped it.
	Ended bool
}

// Recorded lists RecordFile's providers beside the system logger.
func Recorded() []Provider {
	const all = ^uint64(0) // keywords
	return []Provider{
		{"Microsoft-Windows-Kernel-Process", KernelProcess, 0x10},
		{"Microsoft-Windows-Host-Network-Service", guid(0x0c885e0d, 0x6eb6, 0x476c, 0xa048, 0x2457eed3a5c1), all},
		{"Microsoft-Windows-Host-Network-Management", guid(0x93f693dc, 0x9163, 0x4dee, 0xaf64, 0xd855218af242), all},
		{"Microsoft-Windows-Overlay-HNSPlugin", guid(0x564368d6, 0x577b, 0x4af5, 0xad84, 0x1c54464848e6), all},
		{"Microsoft-Windows-WMI-Activity", guid(0x1418ef04, 0xb0b4, 0x4623, 0xbf7e, 0xd74ab47bbdaa), all},
		{"ContainerD", ContainerD, all},
	}
}

// Provider is one of Recorded.
type Provider struct {
	Name     string
	GUID     GUID
	keywords uint64
}
