package etw

// FileOptions say what RecordFile records.
type FileOptions struct {
	// Name is the session's. Empty: "cniscope-record".
	Name string
	// File is the .etl file, an absolute path. It is there once the recording is over, in place of one that was
	// there, and only administrators and the system may read it.
	File string
	// Megabytes is how large it may become; then nothing more is recorded. 0: 512.
	Megabytes int
	// Begun is called once Windows records.
	Begun func()
	// Missing is told of a provider that could not be enabled. The others are recorded.
	Missing func(provider string, err error)
}

// Losses are what Windows could not record.
type Losses struct {
	Events, Buffers uint64
	// Ended: Windows ended the recording by itself, as the file was full, or somebody stopped it.
	Ended bool
}

// Recorded are the providers that RecordFile records beside the system logger's process events: who does something
// while a pod's network is set up.
func Recorded() []Provider {
	return []Provider{
		{Name: "Microsoft-Windows-Kernel-Process", GUID: KernelProcess, keywords: 0x10},
		{Name: "Microsoft-Windows-Host-Network-Service", GUID: guid(0x0c885e0d, 0x6eb6, 0x476c, 0xa048, 0x2457eed3a5c1)},
		{Name: "Microsoft-Windows-Host-Network-Management", GUID: guid(0x93f693dc, 0x9163, 0x4dee, 0xaf64, 0xd855218af242)},
		{Name: "Microsoft-Windows-Overlay-HNSPlugin", GUID: guid(0x564368d6, 0x577b, 0x4af5, 0xad84, 0x1c54464848e6)},
		{Name: "Microsoft-Windows-WMI-Activity", GUID: guid(0x1418ef04, 0xb0b4, 0x4623, 0xbf7e, 0xd74ab47bbdaa)},
		{Name: "ContainerD", GUID: guid(0x2acb92c0, 0xeb9b, 0x571a, 0x69cf, 0x8f3410f383ad)},
	}
}

// Provider is one of Recorded.
type Provider struct {
	Name string
	GUID GUID
	// keywords are those that are recorded; 0: all.
	keywords uint64
}
