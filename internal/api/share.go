package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Share opens a unix socket to the members of a group, by name or number. The server
// refuses privileged routes to them: the kernel names the user of each connection (SO_PEERCRED,
// unix(7)), and only root and the daemon's own user may change something.
func (l Listener) Share(group string) (Listener, error) {
	path := l.Addr().String()
	gid, err := groupID(group)
	if err == nil {
		err = os.Chown(path, -1, gid)
	}
	if err == nil { // after the group: the old one gets no access
		err = os.Chmod(path, sharedSocketMode)
	}
	if err != nil {
		return l, fmt.Errorf("socket %s: share with group %s: %w", path, group, err)
	}
	l.shared = true
	return l, nil
}

const sharedSocketMode = 0o660

func groupID(group string) (int, error) {
	if gid, err := strconv.ParseUint(group, 10, 31); err == nil {
		return int(gid), nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// peerKey is the key of the user at the other end of a connection, in the context of its requests.
type peerKey struct{}

// withPeer adds the user of a connection to its context. The context stays as it is if the kernel
// does not name one.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*counted); ok {
		conn = c.Conn
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return ctx
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			ctx = context.WithValue(ctx, peerKey{}, cred.Uid)
		}
	})
	return ctx
}

// handlerOf returns the handler for the requests of one listener.
func (s *Server) handlerOf(l Listener) http.Handler {
	if !l.shared {
		return s.Handler(l.ReadOnly)
	}
	all, reading := s.restricted(nil), s.restricted(errMember)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := reading
		if uid, known := r.Context().Value(peerKey{}).(uint32); known && (uid == 0 || int(uid) == os.Geteuid()) {
			h = all
		}
		h.ServeHTTP(w, r)
	})
}

// denied returns the error of a command that the kernel does not let connect to a socket. It names
// the group that may.
func denied(path string) string {
	var group string
	if st, err := os.Stat(path); err == nil && st.Mode().Perm()&sharedSocketMode == sharedSocketMode {
		if owner, ok := st.Sys().(*syscall.Stat_t); ok {
			group = strconv.FormatUint(uint64(owner.Gid), 10)
			if g, err := user.LookupGroupId(group); err == nil {
				group = g.Name
			}
		}
	}
	if group == "" {
		return "use sudo, or set socketGroup in the configuration of the daemon and join that group"
	}
	return "use sudo or join the group " + group
}
