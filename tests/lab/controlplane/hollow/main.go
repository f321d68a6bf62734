// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command hollow stands in for the kubelets of many nodes, in one process: it registers the Nodes, lets the pods
// that are bound to them run and end, and serves the kubelets' HTTPS API for logs and exec with the kubelet's own
// library. No container runs: a stand-in of the tester takes the lines and prints what a healthy fabric would.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	nodes := flag.Int("nodes", 10, "number of nodes")
	rails := flag.String("rails", "", "names of the rails, with commas between them")
	resources := flag.String("resources", "", "extended resources of every node, with commas between them")
	port := flag.Int("port", 0, "port of the kubelets' API on the loopback")
	cert := flag.String("tls-cert-file", "", "certificate of the kubelets")
	key := flag.String("tls-private-key-file", "", "its key")
	clientCA := flag.String("client-ca-file", "", "who signs the API server's client certificate")
	delay := flag.Duration("exec-delay", 200*time.Millisecond, "time until a command begins in a container")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	config.QPS, config.Burst, config.UserAgent = 500, 500, "hollow"
	client, err := kubernetes.NewForConfig(config)
	must(err)

	fleet := newFleet(strings.Split(*rails, ","), *delay)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	must(err)
	server := &http.Server{Handler: handler(fleet), TLSConfig: trust(*clientCA), ErrorLog: log.New(os.Stderr, "", 0)}
	go func() { must(server.ServeTLS(listener, *cert, *key)) }()

	ctx := context.Background()
	must(register(ctx, client, *nodes, *port, strings.Split(*resources, ",")))
	fmt.Println("registered")
	runPods(ctx, client, fleet)
}

func trust(path string) *tls.Config {
	text, err := os.ReadFile(path)
	must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "hollow:", err)
		os.Exit(1)
	}
}
