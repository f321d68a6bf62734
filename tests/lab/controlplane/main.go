// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command labkube is the lab's Kubernetes in one binary: the first argument names the program.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// command builds only the chosen program: building all of them panics, since each one sets up signals.
func command(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	}
	return nil
}

func main() {
	if len(os.Args) > 1 {
		if chosen := command(os.Args[1]); chosen != nil {
			os.Args = os.Args[1:]
			os.Exit(cli.Run(chosen))
		}
	}
	fmt.Fprintln(os.Stderr, "usage: labkube kube-apiserver|kube-controller-manager|kube-scheduler|kubelet [flags]")
	os.Exit(2)
}
