// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Images of this registry cannot be pulled; its domain never exists (RFC 2606).
const noRegistry = "registry.invalid/"

// runPods plays the part of the kubelets in the life of pods: Running once bound, gone once deleted. It does not end.
func runPods(ctx context.Context, client kubernetes.Interface, fleet *fleet) {
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "")
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, bound)
	queue := make(chan *corev1.Pod, 10_000)
	enqueue := func(item any) {
		if pod, ok := item.(*corev1.Pod); ok {
			queue <- pod
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: func(_, item any) { enqueue(item) },
		},
	})
	for range workers {
		go func() {
			for pod := range queue {
				if err := handle(ctx, client, fleet, pod); err != nil {
					fmt.Fprintf(os.Stderr, "pod %s: %v\n", pod.Name, err)
				}
			}
		}()
	}
	informer.RunWithContext(ctx)
}

func handle(ctx context.Context, client kubernetes.Interface, fleet *fleet, pod *corev1.Pod) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	if pod.DeletionTimestamp != nil {
		fleet.remove(pod.Name, time.Now())
		now := int64(0)
		options := metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}}
		// The Job controller's finalizer may hold it for a while; a second deletion does no harm.
		return ignoreGone(pods.Delete(ctx, pod.Name, options))
	}
	if pod.Status.Phase != corev1.PodPending || len(pod.Status.ContainerStatuses) > 0 {
		return nil
	}
	status := running(pod, time.Now())
	if strings.HasPrefix(pod.Spec.Containers[0].Image, noRegistry) {
		status = withoutImage(pod)
	} else {
		fleet.add(pod.Name, nodeNumber(pod.Spec.NodeName), time.Now())
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignoreGone(err)
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func running(pod *corev1.Pod, at time.Time) corev1.PodStatus {
	now, number := metav1.NewTime(at), nodeNumber(pod.Spec.NodeName)
	container, yes := pod.Spec.Containers[0], true
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now, HostIP: "127.0.0.1",
		PodIP: fmt.Sprintf("10.128.%d.%d", number>>8, number&255),
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image, Ready: true, Started: &yes,
			ContainerID: "containerd://" + string(pod.UID),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now}
		status.Conditions = append(status.Conditions, condition)
	}
	return status
}

// withoutImage is the status of a pod whose image cannot be pulled, in the words of a kubelet with containerd.
func withoutImage(pod *corev1.Pod) corev1.PodStatus {
	container := pod.Spec.Containers[0]
	message := fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: dial tcp: "+
		"lookup registry.invalid: no such host", container.Image, container.Image)
	return corev1.PodStatus{
		Phase: corev1.PodPending, HostIP: "127.0.0.1",
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image,
			State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: message},
			},
		}},
	}
}
