package etw

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// Constants of evntrace.h, evntcons.h and wmistr.h that x/sys lacks, for 64-bit pointers.
const (
	errorSuccess    = windows.Errno(0)
	errClosePending = windows.Errno(7007) // ERROR_CTX_CLOSE_PENDING
	errNoSession    = windows.Errno(4201) // ERROR_WMI_INSTANCE_NOT_FOUND

	flagTracedGUID = 0x00020000 // WNODE_FLAG_TRACED_GUID
	clockCounter   = 1          // WNODE_HEADER.ClientContext: QueryPerformanceCounter

	modeSequential   = 0x00000001 // EVENT_TRACE_FILE_MODE_SEQUENTIAL
	modeMSFlush      = 0x00000010 // EVENT_TRACE_USE_MS_FLUSH_TIMER, not in the SDK
	modeRealTime     = 0x00000100 // EVENT_TRACE_REAL_TIME_MODE
	modeSystemLogger = 0x02000000 // EVENT_TRACE_SYSTEM_LOGGER_MODE

	// EVENT_TRACE_FLAG_PROCESS, without hardware data (_NO_SYSCONFIG).
	enableProcess = 0x00000001 | 0x10000000

	controlQuery = 0 // EVENT_TRACE_CONTROL_*
	controlStop  = 1

	enableProvider   = 1    // EVENT_CONTROL_CODE_ENABLE_PROVIDER
	levelInformation = 4    // TRACE_LEVEL_INFORMATION
	levelVerbose     = 5    // TRACE_LEVEL_VERBOSE
	keywordProcess   = 0x10 // WINEVENT_KEYWORD_PROCESS of Microsoft-Windows-Kernel-Process

	processRealTime  = 0x00000100 // PROCESS_TRACE_MODE_*
	processRaw       = 0x00001000
	processRecords   = 0x10000000
	invalidTrace     = ^uint64(0) // INVALID_PROCESSTRACE_HANDLE
	header32Bit      = 0x0020     // EVENT_HEADER_FLAG_32_BIT_HEADER
	nameMax          = 1024       // characters of a name
	sizeofProperties = 120        // EVENT_TRACE_PROPERTIES
)

var (
	advapi32       = windows.NewLazySystemDLL("advapi32.dll")
	startTrace     = advapi32.NewProc("StartTraceW")
	controlTrace   = advapi32.NewProc("ControlTraceW")
	enableTraceEx2 = advapi32.NewProc("EnableTraceEx2")
	openTrace      = advapi32.NewProc("OpenTraceW")
	processTrace   = advapi32.NewProc("ProcessTrace")
	closeTrace     = advapi32.NewProc("CloseTrace")
)

// properties is EVENT_TRACE_PROPERTIES followed by two names.
type properties struct {
	bufferSize        uint32 // WNODE_HEADER: total size
	_                 uint32
	_                 uint64
	_                 int64
	guid              windows.GUID
	clock             uint32
	flags             uint32
	bufferKB          uint32
	buffersMin        uint32
	buffersMax        uint32
	fileMaxMB         uint32
	mode              uint32
	flushTimer        uint32
	enable            uint32
	_                 int32
	_, _              uint32
	eventsLost        uint32
	buffersWritten    uint32
	logBuffersLost    uint32
	realTimeLost      uint32
	_                 uintptr
	fileOffset        uint32
	nameOffset        uint32
	sessionName, file [nameMax]uint16
}

func newProperties() *properties {
	p := &properties{flags: flagTracedGUID, nameOffset: sizeofProperties, fileOffset: sizeofProperties + 2*nameMax}
	p.bufferSize = uint32(unsafe.Sizeof(*p))
	return p
}

// Wrong sizes for Windows do not compile.
var (
	_ [sizeofProperties]byte = [unsafe.Offsetof(properties{}.sessionName)]byte{}
	_ [448]byte              = [unsafe.Sizeof(logfile{})]byte{}
	_ [112]byte              = [unsafe.Sizeof(eventRecord{})]byte{}
)

// logfile is EVENT_TRACE_LOGFILEW for this interface's input.
type logfile struct {
	file, session *uint16
	_             int64
	_             uint32
	mode          uint32
	_             [88]byte  // EVENT_TRACE
	_             [280]byte // TRACE_LOGFILE_HEADER
	bufferDone    uintptr
	_             [4]uint32
	record        uintptr
	_             [2]uint32
	context       unsafe.Pointer
}

// eventRecord is EVENT_RECORD, which begins with EVENT_HEADER.
type eventRecord struct {
	_             uint32
	flags         uint16
	_             uint16
	_, _          uint32
	time          int64
	provider      GUID
	id            uint16
	version       uint8
	_             uint8
	_             uint8
	opcode        uint8
	_             uint16
	_             uint64
	_             uint64
	_             GUID
	_             [3]uint16
	payloadLength uint16
	_             uintptr
	payload       *byte
	context       *logger
}

// call calls a function that returns an error number. Pointer arguments stay valid until it returns.
//
//go:uintptrescapes
func call(f *windows.LazyProc, arguments ...uintptr) error {
	if err := f.Find(); err != nil {
		return err
	}
	if n, _, _ := f.Call(arguments...); windows.Errno(n) != errorSuccess {
		return windows.Errno(n)
	}
	return nil
}
