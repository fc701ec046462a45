package record

import (
	"crypto/sha256"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

func kernel() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}

// bootID is a hash of the machine's id, which stays private, and the boot time.
func bootID() string {
	machine := ""
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Cryptography`,
		registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err == nil {
		machine, _, _ = key.GetStringValue("MachineGuid")
		_ = key.Close()
	}
	started := booted()
	if machine == "" && started == 0 {
		return ""
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%s %d", machine, started))
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// booted returns the boot time as a FILETIME, unaffected by later changes of the clock; 0 if unknown.
func booted() int64 {
	var t struct { // SYSTEM_TIMEOFDAY_INFORMATION
		boot, current, zone int64
		zoneID, _           uint32
		bootBias, sleepBias int64
	}
	size := uint32(unsafe.Sizeof(t))
	if windows.NtQuerySystemInformation(windows.SystemTimeOfDayInformation, unsafe.Pointer(&t), size, nil) != nil {
		return 0
	}
	return t.boot - t.bootBias
}
