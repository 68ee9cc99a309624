// Package config reads the configuration: a YAML file, DRIVEBAY_* variables and flags, each
// overriding the one before. It rejects unknown keys and invalid values, and reports all errors
// with their origin at once.
package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drivebay/drivebay"
	"github.com/drivebay/drivebay/internal/health"
)

// Config is the whole configuration. The tags are the only list of its keys: the reader, the
// variables, the flags, the printed example and the checks use them. Keys with the tag "live" take
// effect on SIGHUP, the others with the next start.
type Config struct {
	Role           string             `yaml:"role" flag:"role" oneof:"all node controller" doc:"all: the daemon of a machine, with the CSI controller service for its own volumes. node: the same without the controller service, which the controller of a Kubernetes cluster serves for all nodes. controller: that controller, which manages no drives."`
	StateDir       string             `yaml:"stateDir" flag:"state-dir" doc:"Directory of the records and events. Empty: /var/lib/drivebay for root, else $XDG_STATE_HOME/drivebay."`
	API            string             `yaml:"api" flag:"api" doc:"The unix socket of the API, as unix:///path. Empty: /run/drivebay/drivebay.sock for root, else below $XDG_RUNTIME_DIR or the state directory."`
	SocketGroup    string             `yaml:"socketGroup" flag:"socket-group" doc:"Group whose members may read from the API at its unix socket, which is then 0660 instead of 0600. They may change nothing: that takes root. Empty: only root and the user of the daemon may connect."`
	Listen         string             `yaml:"listen" flag:"listen" doc:"TCP address to serve HTTP on, read-only, such as 127.0.0.1:10748. Empty: no HTTP."`
	CSIEndpoint    string             `yaml:"csiEndpoint" flag:"csi-endpoint" doc:"Socket to serve the Container Storage Interface on, as unix:///path (also $CSI_ENDPOINT). Empty: no CSI."`
	AddonsEndpoint string             `yaml:"addonsEndpoint" flag:"addons-endpoint" doc:"Socket to serve CSI-Addons on (healing, reclaiming space, changing keys), as unix:///path. Empty: no CSI-Addons."`
	NodeID         string             `yaml:"nodeID" flag:"node-id" doc:"Name of this machine in the container orchestrator, at most 128 bytes. Empty: the host name."`
	VolumeRoots    []string           `yaml:"volumeRoots" flag:"volume-roots" doc:"Directories below which volumes may be mounted, absolute and without links: /var/lib/kubelet for Kubernetes, the client/csi directory of Nomad, or another one."`
	Root           string             `yaml:"root" flag:"root" doc:"Directory that contains sys/, proc/ and run/ of the machine."`
	Loop           bool               `yaml:"loop" flag:"loop" live:"yes" doc:"Show loop devices as drives. One that is claimed or has volumes is always shown."`
	Claim          drivebay.Selectors `yaml:"claim" flag:"claim" live:"yes" doc:"Drives that may be used for volumes, such as type=nvme,size>=1TB; serial=S64H*. Keys are id, serial, vendor, model, type, transport, bay, enclosure and size; \"all\" means all drives. Empty: only drives that an operator claimed. A drive with content is never claimed."`
	Sim            string             `yaml:"sim" flag:"sim" doc:"File that describes a simulated machine, which the daemon manages instead of the real one. The default of poll.evidence is then 10s."`

	HTTP        HTTP              `yaml:"http" doc:"What the address listen requires of requests. docs/http.md describes it."`
	Notify      Notify            `yaml:"notify" doc:"Notices of what people have to know. docs/notices.md describes them."`
	Kubernetes  Kubernetes        `yaml:"kubernetes" doc:"Objects of Kubernetes that show the drives and volumes, and by which drives are claimed, cordoned, released and removed, and volumes made and deleted. docs/kubernetes.md describes them."`
	Log         Log               `yaml:"log" doc:"The log, which is written to standard error."`
	Volumes     Volumes           `yaml:"volumes" doc:"Filesystems of volumes, and when a volume is full; docs/volume-conditions.md is the table of conditions."`
	Healing     Healing           `yaml:"healing" doc:"Automatic repairs of volumes; docs/repairs.md is the table of repairs."`
	Replication Replication       `yaml:"replication" doc:"Replication of volumes to another machine. docs/replication.md is the runbook."`
	Poll        Poll              `yaml:"poll" doc:"Intervals and limits of reading the drives. Events of the kernel always start a reading at once."`
	SelfTests   SelfTests         `yaml:"selfTests" doc:"Self-tests that the drives run in the background."`
	Replacement Replacement       `yaml:"replacement" doc:"The removal of drives from the machine. docs/drive-replacement.md is the runbook."`
	Thresholds  health.Thresholds `yaml:"thresholds" live:"yes" doc:"Thresholds of the health rules. docs/health-rules.md explains each."`
}

// The roles of a daemon.
const (
	RoleAll        = "all"
	RoleNode       = "node"
	RoleController = "controller"
)

// Kubernetes configures the objects that the daemon keeps in a Kubernetes cluster.
type Kubernetes struct {
	Enabled    bool   `yaml:"enabled" flag:"kubernetes" doc:"Show the drives and volumes as Drive and Volume objects, and do what their spec requests. nodeID has to be the name of the node in the cluster."`
	Kubeconfig string `yaml:"kubeconfig" flag:"kubeconfig" doc:"File that says how to reach the API server. Empty: the service account of the pod."`
	Namespace  string `yaml:"namespace" flag:"kubernetes-namespace" doc:"Namespace of the Leases by which nodes and controllers report that they are alive. Empty: that of the pod, or of the kubeconfig."`
	Page       bool   `yaml:"page" flag:"kubernetes-page" doc:"With the role controller: serve the page of the cluster, which only reads, on the socket api. docs/page.md describes it."`
}

// Log is the configuration of the log.
type Log struct {
	Level  string `yaml:"level" flag:"log-level" live:"yes" oneof:"debug info warn error" doc:"debug, info, warn or error."`
	Format string `yaml:"format" flag:"log-format" oneof:"text json" doc:"text or json."`
}

// Volumes configures how the condition of volumes is judged.
type Volumes struct {
	Filesystems []string `yaml:"filesystems" flag:"volumes-filesystems" doc:"Filesystems that StorageClasses request: ext4, xfs, btrfs. The plugin is not ready while the mkfs program of one is missing, and creates volumes with no other filesystem."`
	FullPercent int      `yaml:"fullPercent" flag:"volumes-full-percent" min:"0" max:"100" doc:"Percentage of used space or inodes, of those that users other than root can use, at which a volume has the condition OutOfCapacity. 0: a full filesystem is not a fault."`
}

// Healing configures the automatic repair of volumes.
type Healing struct {
	Policy string `yaml:"policy" flag:"healing-policy" oneof:"off safe" doc:"off: volumes are healed on request only (drivebay heal, NodeHealer). safe: the daemon also does the repairs that write nothing to the data of users and unmount nothing that can still be used."`
}

// Replication configures the replication of volumes.
type Replication struct {
	SecretFile string `yaml:"secretFile" flag:"replication-secret-file" doc:"File that holds the secret with which replicated volumes connect to their peers again after a restart of the machine. Only its owner may be able to read it. It is read for each volume. Empty: they wait for the next call that has the secret."`
}

// Poll holds the intervals and limits of reading drives, and how long drives are remembered.
type Poll struct {
	Tick        time.Duration `yaml:"tick" live:"yes" min:"100ms" max:"1m" doc:"Interval of reading the counters and states of the kernel, without a request to a drive."`
	Evidence    time.Duration `yaml:"evidence" live:"yes" min:"10s" max:"1d" doc:"Interval of reading the health pages of every drive that is not in standby."`
	Rescan      time.Duration `yaml:"rescan" live:"yes" min:"10s" max:"1d" doc:"Interval of listing all drives, in case an event of the kernel was lost."`
	Timeout     time.Duration `yaml:"timeout" live:"yes" min:"1s" max:"10m" doc:"Time within which a drive has to answer a request."`
	Parallel    int           `yaml:"parallel" min:"1" max:"1000" doc:"Maximum number of drives that are read at the same time."`
	ForgetAfter time.Duration `yaml:"forgetAfter" live:"yes" min:"1h" max:"3650d" doc:"Time after which the record of an absent drive is deleted, if nothing needs it."`
}

// SelfTests is the schedule of self-tests.
type SelfTests struct {
	Enabled       bool          `yaml:"enabled" live:"yes" doc:"Start self-tests on this schedule."`
	Short         time.Duration `yaml:"short" live:"yes" min:"0" max:"365d" doc:"Time between short tests: 7d, weekly, never ..."`
	Long          time.Duration `yaml:"long" live:"yes" min:"0" max:"365d" doc:"Time between long tests: 30d, monthly, never ..."`
	Window        DailyWindow   `yaml:"window" live:"yes" doc:"Tests start only between these local times. Empty: at any time."`
	MaxConcurrent int           `yaml:"maxConcurrent" live:"yes" min:"1" max:"1000" doc:"Maximum number of drives under test at the same time."`
}

// Replacement configures when a drive is released automatically, and how fast its volumes are
// moved.
type Replacement struct {
	Trigger  string `yaml:"trigger" live:"yes" oneof:"off bad suspect" doc:"Health at which a claimed drive is released automatically: off, bad or suspect. Only one drive is released at a time, and none while the health of several drives of one enclosure or controller changed at once. An operator approves the removal."`
	Throttle int    `yaml:"throttle" min:"1" max:"100" doc:"Share of the time, in percent, in which the daemon copies logical volumes that move to another drive; 100 is as fast as the drives allow."`
	CopyRate uint64 `yaml:"copyRate" doc:"Maximum number of bytes per second that are copied when a volume moves to another drive. 0: no limit."`
}

// Default returns the configuration of an empty file.
func Default() Config {
	return Config{
		Role: RoleAll, Root: "/", VolumeRoots: []string{"/var/lib/kubelet"},
		HTTP:    HTTP{Hosts: []string{}},
		Notify:  Notify{Kinds: slices.Clone(noticeKinds), Command: []string{}, Timeout: 10 * time.Second},
		Log:     Log{Level: "info", Format: "text"},
		Volumes: Volumes{Filesystems: slices.Clone(drivebay.FSTypes)},
		Healing: Healing{Policy: "off"},
		Poll: Poll{
			Tick: 2 * time.Second, Evidence: 10 * time.Minute, Rescan: 5 * time.Minute,
			Timeout: 30 * time.Second, Parallel: 16, ForgetAfter: 30 * day,
		},
		SelfTests: SelfTests{
			Short: 7 * day, Long: 30 * day, MaxConcurrent: 1,
			Window: DailyWindow{From: time.Hour, To: 5 * time.Hour},
		},
		Replacement: Replacement{Trigger: "bad", Throttle: 100},
		Thresholds:  health.Default(),
	}
}

// Place holds the properties of the process that the default paths depend on.
type Place struct {
	Root   bool // the process runs as root
	Getenv func(string) string
}

// Here returns the Place of this process.
func Here() Place { return Place{Root: os.Geteuid() == 0, Getenv: os.Getenv} }

// SystemFile is the configuration of the machine's daemon.
const SystemFile = "/etc/drivebay/drivebay.yaml"

// File returns the configuration file that is read without --config, if it exists. Only root has
// one.
func (p Place) File() string {
	if p.Root {
		return SystemFile
	}
	return ""
}

// Resolve sets the paths that the configuration leaves empty.
func (c Config) Resolve(p Place) Config {
	if c.StateDir == "" {
		c.StateDir = p.StateDir()
	}
	if c.API == "" {
		c.API = "unix://" + p.socket(c.StateDir)
	}
	return c
}

// StateDir returns the default state directory.
func (p Place) StateDir() string {
	if p.Root {
		return "/var/lib/drivebay"
	}
	if dir := p.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "drivebay")
	}
	return filepath.Join(p.Getenv("HOME"), ".local", "state", "drivebay")
}

// API returns the default address of the daemon.
func (p Place) API() string { return "unix://" + p.socket(p.StateDir()) }

// systemSocket is the socket of the machine's daemon.
const systemSocket = "/run/drivebay/drivebay.sock"

// ClientAPI returns the address at which commands look for the daemon: the one of the user, or the
// machine's if the user has none. stat is that of a file.
func (p Place) ClientAPI(stat func(path string) error) string {
	own := p.socket(p.StateDir())
	if stat(own) != nil && !errors.Is(stat(systemSocket), fs.ErrNotExist) { // it may be in a directory that the user cannot read
		own = systemSocket
	}
	return "unix://" + own
}

func (p Place) socket(stateDir string) string {
	if p.Root {
		return systemSocket
	}
	if dir := p.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "drivebay", "drivebay.sock")
	}
	return filepath.Join(stateDir, "drivebay.sock")
}
