package kernel

// The objects are committed, so building needs no clang; `make drift` checks them.
//
//go:generate go tool bpf2go -cc clang -no-strip=false -target bpfel -type fork_event -type thread_context -type exec_event -type exit_event -type process -type lost_key -type account -type call -type kind -type flag -type counter -type caller -type anchor -type server -type habit -type watched -type belief Life bpf/probe.c -- -Ibpf -I/usr/include -O2 -Wall -Werror
//go:generate go tool bpf2go -cc clang -no-strip=false -target bpfel -type call_event -type conn -type pair -type half -type stream -type role -type contended -type class Inside bpf/inside.c -- -Ibpf -I/usr/include -O2 -Wall -Werror
//go:generate go tool bpf2go -cc clang -no-strip=false -target bpfel -no-global-types Functions bpf/functions.c -- -Ibpf -I/usr/include -O2 -Wall -Werror
