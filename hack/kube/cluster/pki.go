package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// identity is a certificate that a component of the cluster needs.
type identity struct {
	file, user, group string
	names             []string
	addresses         []net.IP
}

var identities = []identity{
	{file: "apiserver", user: "kube-apiserver", names: []string{"kubernetes.default.svc", "localhost"}, addresses: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(serviceIP), net.ParseIP(nodeIP)}},
	{file: "apiserver-kubelet", user: "kube-apiserver-kubelet-client", group: "system:masters"},
	{file: "admin", user: "admin", group: "system:masters"},
	{file: "controllers", user: "system:kube-controller-manager"},
	{file: "scheduler", user: "system:kube-scheduler"},
	{file: "kubelet", user: "system:node:" + NodeName, group: "system:nodes", names: []string{NodeName}, addresses: []net.IP{net.ParseIP(nodeIP)}},
}

// writeIdentities makes a certificate authority, the certificates that it signs, a kubeconfig of each, and
// the key of the service accounts.
func writeIdentities(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority := certificate(1, "kube-ca", "")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	errs := []error{writePair(dir, "ca", authority, authority, key, key)}
	for i, id := range identities {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		c := certificate(int64(i+2), id.user, id.group)
		c.DNSNames, c.IPAddresses = id.names, id.addresses
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		errs = append(errs, writePair(dir, id.file, c, authority, own, key), writeKubeconfig(dir, id.file))
	}
	accounts, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&accounts.PublicKey)
	return errors.Join(append(errs, err, writePEM(filepath.Join(dir, "accounts.key"), "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(accounts)),
		writePEM(filepath.Join(dir, "accounts.pub"), "PUBLIC KEY", public))...)
}

func certificate(serial int64, user, group string) *x509.Certificate {
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: user}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour)}
	if group != "" {
		c.Subject.Organization = []string{group}
	}
	return c
}

func writePair(dir, name string, c, authority *x509.Certificate, key, signer *ecdsa.PrivateKey) error {
	signed, err := x509.CreateCertificate(rand.Reader, c, authority, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	return errors.Join(err, writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", signed), writePEM(filepath.Join(dir, name+".key"), "EC PRIVATE KEY", private))
}

func writePEM(file, kind string, content []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)
}

func writeKubeconfig(dir, name string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: "https://127.0.0.1", certificate-authority: %[1]s/ca.crt}}]
users: [{name: %[2]s, user: {client-certificate: %[1]s/%[2]s.crt, client-key: %[1]s/%[2]s.key}}]
contexts: [{name: lab, context: {cluster: lab, user: %[2]s}}]
current-context: lab
`, dir, name)
	return os.WriteFile(filepath.Join(dir, name+".kubeconfig"), []byte(text), 0o600)
}
