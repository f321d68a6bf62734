// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	clientremotecommand "k8s.io/client-go/tools/remotecommand"
	kubelet "k8s.io/kubelet/pkg/cri/streaming/remotecommand"
	"k8s.io/utils/exec"
)

const (
	idleTimeout   = 10 * time.Minute
	createTimeout = 30 * time.Second
)

// handler serves the two paths of the kubelets' API that the API server forwards logs and exec to.
func handler(fleet *fleet) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", fleet.logs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", fleet.exec)
	return mux
}

func (f *fleet) logs(w http.ResponseWriter, r *http.Request) {
	found := f.find(r.PathValue("pod"))
	if found == nil {
		http.Error(w, fmt.Sprintf("pod %q not found", r.PathValue("pod")), http.StatusNotFound)
		return
	}
	var since time.Time
	if seconds, err := strconv.Atoi(r.FormValue("sinceSeconds")); err == nil {
		since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	w.Header().Set("Content-Type", "text/plain")
	flush := w.(http.Flusher).Flush
	flush()
	found.copyLog(r.Context(), since, r.FormValue("follow") == "true", func(text string) {
		io.WriteString(w, text)
		flush()
	})
}

func (f *fleet) exec(w http.ResponseWriter, r *http.Request) {
	options, err := kubelet.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, container := r.PathValue("pod"), r.PathValue("container")
	kubelet.ServeExec(w, r, f, pod, types.UID(""), container, r.Form["command"], options, idleTimeout, createTimeout,
		remotecommand.SupportedStreamingProtocols)
}

// ExecInContainer runs the one command that testers know, as kubelet.Executor wants it.
func (f *fleet) ExecInContainer(_ context.Context, pod string, _ types.UID, _ string, command []string, in io.Reader,
	out, _ io.WriteCloser, _ bool, _ <-chan clientremotecommand.TerminalSize, _ time.Duration) error {
	found := f.find(pod)
	if found == nil {
		return fmt.Errorf("pod %q not found", pod)
	}
	time.Sleep(f.delay)
	if err := found.run(command, in, out); err != nil {
		fmt.Fprintln(out, err)
		return exec.CodeExitError{Err: err, Code: 2}
	}
	return nil
}
