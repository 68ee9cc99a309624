# drivebay as a CSI plugin of Nomad, a monolith on each machine with drives:
#
#   nomad job run -var 'nodes=["node-1", "node-2"]' -var image=registry.example/drivebay:v1.0.0 drivebay.nomad.hcl
#
# A daemon knows the volumes of its own machine, and Nomad sends the calls of a controller to any
# instance of a plugin. So each machine is a plugin of its own, drivebay-NODE: `plugin_id` of a volume
# selects the machine. The clients need `allow_privileged = true` in the configuration of the docker
# driver.

variable "nodes" {
  type        = list(string)
  description = "names of the clients with drives"
}

variable "image" {
  type        = string
  default     = "drivebay:latest"
  description = "the image that `make image` builds"
}

variable "data_dir" {
  type        = string
  default     = "/opt/nomad/data"
  description = "data_dir of the clients"
}

job "drivebay" {
  type = "system" # a drain ends it last, after the jobs that use volumes

  dynamic "group" {
    for_each = var.nodes
    labels   = [group.value]

    content {
      constraint {
        attribute = "${node.unique.name}"
        value     = group.value
      }

      task "drivebay" {
        driver      = "docker"
        kill_signal = "SIGTERM"

        config {
          image      = var.image
          privileged = true
          pid_mode   = "host"
          ipc_mode   = "host"

          args = [
            "serve",
            "--csi-endpoint=unix:///csi/csi.sock",
            "--node-id=${node.unique.name}",
            "--volume-roots=${var.data_dir}/client/csi",
          ]

          volumes = [
            "/sys:/sys",
            "/run/udev:/run/udev:ro",
            "/run/lock/lvm:/run/lock/lvm",
            "/var/lib/drivebay:/var/lib/drivebay",
            "/run/drivebay:/run/drivebay",
          ]
        }

        # Nomad mounts the socket's directory, the volumes and /dev. The path of the volumes is that of
        # the client, so that the mount table of the machine names them as the daemon does.
        csi_plugin {
          id                     = "drivebay-${group.value}"
          type                   = "monolith"
          mount_dir              = "/csi"
          stage_publish_base_dir = "${var.data_dir}/client/csi/monolith/drivebay-${group.value}"
        }

        resources {
          cpu    = 200
          memory = 256
        }
      }
    }
  }
}
