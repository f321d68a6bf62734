// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	workers = 16
	// As many as a kubelet reports at most; they are most of a Node's size.
	images = 50
)

// nodeName is the name of node number 1, 2, ...; hosts of the same names are in tests/unit/support/plan_factory.py.
func nodeName(number int) string { return fmt.Sprintf("gpu-%04d", number) }

func nodeNumber(name string) int {
	number := 0
	fmt.Sscanf(name, "gpu-%d", &number)
	return number
}

// register makes the Nodes, all of them ready, with one port for all kubelets.
func register(ctx context.Context, client kubernetes.Interface, count, port int, resources []string) error {
	numbers := make(chan int)
	failed := make(chan error, workers)
	var group sync.WaitGroup
	for range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := range numbers {
				node := nodeObject(number, port, resources)
				if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		}()
	}
	for number := 1; number <= count; number++ {
		numbers <- number
	}
	close(numbers)
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func nodeObject(number, port int, resources []string) *corev1.Node {
	name := nodeName(number)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("128"),
		corev1.ResourceMemory: resource.MustParse("2Ti"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	for _, extended := range resources {
		if extended != "" {
			capacity[corev1.ResourceName(extended)] = resource.MustParse("8")
		}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			},
		},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}},
			NodeInfo:        corev1.NodeSystemInfo{MachineID: fmt.Sprintf("%032x", number), OperatingSystem: "linux"},
			Images:          imageList(),
		},
	}
}

func imageList() []corev1.ContainerImage {
	list := make([]corev1.ContainerImage, images)
	for at := range list {
		base := fmt.Sprintf("registry.example.com/platform/component-%02d", at)
		list[at] = corev1.ContainerImage{
			Names: []string{fmt.Sprintf("%s@sha256:%064x", base, at), base + ":v1.2.3"}, SizeBytes: 100_000_000,
		}
	}
	return list
}
