#!/usr/bin/env bash
# Builds a real Kubernetes from Debian packages, for machines without a container engine.
#
#   k3d/no-docker/build.sh
#
# Kubernetes 1.20.2 is the newest whole source tree that Debian has. It is built with Debian's Go, and etcd, containerd,
# runc, the CNI plugins, busybox and the oldest kubectl in use are unpacked beside it: nothing is installed, and no root
# is needed. It takes about six minutes on two cores, three gigabytes while it builds and half of one afterwards; with a
# finished build it returns at once.
#
# Environment, all optional:
#   OPS_K8S_HOME  where the build goes                      (~/.cache/mcp-ops/k8s-1.20.2)
set -euo pipefail

readonly VERSION=1.20.2
readonly SUITE=bookworm
readonly GO=1.19
readonly OLD_KUBECTL=kubernetes-client
readonly PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler kubelet)
readonly PACKAGES=(
  "golang-$GO-go" "golang-$GO-src" golang-github-modern-go-reflect2-dev
  etcd-server containerd runc containernetworking-plugins busybox-static
)

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${OPS_K8S_HOME:-$HOME/.cache/mcp-ops/k8s-$VERSION}
work=$home/build

say() { printf '%s\n' "no-docker/build.sh: $*" >&2; }
stop() { say "$*"; exit 1; }

is_built() {
  local program
  for program in "${PROGRAMS[@]}"; do [ -x "$home/bin/$program" ] || return 1; done
  [ -x "$home/debian/usr/bin/etcd" ]
}

# The system's apt configuration is not touched: lists, cache and sources are our own, only the mirror is the system's.
mirror() {
  local found=""
  if [ -r /etc/apt/sources.list.d/debian.sources ]; then
    found=$(awk '$1 == "URIs:" { print $2; exit }' /etc/apt/sources.list.d/debian.sources)
  fi
  if [ -z "$found" ] && [ -r /etc/apt/sources.list ]; then
    found=$(awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ "://") { print $i; exit } }' /etc/apt/sources.list)
  fi
  printf '%s\n' "${found:-http://deb.debian.org/debian}"
}

own_apt() {
  apt-get -qq -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
    -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o APT::Sandbox::User="$(id -un)" "$@"
}

prepare_apt() {
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg uri
  [ -r "$keys" ] || stop "$keys is missing: this needs a Debian machine, or its package debian-archive-keyring"
  uri=$(mirror)
  say "downloading from $uri"
  mkdir -p "$work"/{debs,source} "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
  printf "%s [signed-by=$keys] $uri $SUITE main\n" deb deb-src >"$work/apt/sources.list"
  own_apt update
}

download() {
  (cd "$work/debs" && own_apt download "${PACKAGES[@]}")
  (cd "$work/source" && own_apt source --download-only kubernetes)
}

need_old_kubectl() {
  if [ -x "$home/debian/usr/bin/kubectl" ]; then return; fi
  prepare_apt
  (cd "$work" && own_apt download "$OLD_KUBECTL" && dpkg-deb --extract "$OLD_KUBECTL"_*.deb unpacked)
  mv "$work/unpacked/usr/bin/kubectl" "$home/debian/usr/bin/kubectl"
  rm -rf "$work"
}

unpack() {
  local package
  mkdir -p "$home/debian" "$tree"
  for package in "$work"/debs/*.deb; do dpkg-deb --extract "$package" "$home/debian"; done
  tar --extract --gzip --file "$work"/source/kubernetes_1.20.*.orig.tar.gz --directory "$tree" --strip-components=1
}

# Debian's tree lacks one generated file, and its vendored reflect2 is too old for Go 1.18 and later.
complete_the_tree() {
  local vendored inputs
  vendored=$(echo "$tree"/vendor/*/modern-go/reflect2)
  rm -f "$vendored"/*.go
  cp "$home"/debian/usr/share/gocode/src/*/modern-go/reflect2/*.go "$vendored/"
  cd "$tree"
  go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
  inputs=$(grep --recursive --files-with-matches --include='*.go' '+k8s:openapi-gen=' vendor/k8s.io/*/ pkg cmd |
    grep --invert-match --extended-regexp 'code-generator|sample-apiserver|_test.go|/testdata/' |
    xargs --max-args=1 dirname | LC_ALL=C sort --unique | sed 's#^#k8s.io/kubernetes/#' | paste --serial --delimiters=,)
  "$work/openapi-gen" --v 0 --logtostderr -O zz_generated.openapi -p k8s.io/kubernetes/pkg/generated/openapi -i "$inputs" \
    -r "$work/violations" --go-header-file vendor/k8s.io/code-generator/hack/boilerplate.go.txt \
    --output-base "$work/gopath/src" 2>/dev/null
}

compile() {
  local vendor=k8s.io/kubernetes/vendor/k8s.io flags packages=() program
  flags="-X $vendor/component-base/version.gitVersion=v$VERSION -X $vendor/component-base/version.gitTreeState=clean"
  flags+=" -X $vendor/component-base/version.gitMajor=1 -X $vendor/component-base/version.gitMinor=20"
  flags+=" -X $vendor/client-go/pkg/version.gitVersion=v$VERSION"
  for program in "${PROGRAMS[@]}"; do packages+=("./cmd/$program"); done
  mkdir -p "$home/bin.part"
  go build -p "$(nproc)" -tags providerless,dockerless -trimpath -ldflags "-s -w $flags" -o "$home/bin.part/" "${packages[@]}"
  rm -rf "${home:?}/bin"
  mv "$home/bin.part" "$home/bin"
}

clean_up() {
  cd "$home"
  chmod -R u+w "$work"
  rm -rf "$work" "$home"/debian/usr/lib/go-"$GO" "$home/debian/usr/share"
}

finish() {
  need_old_kubectl
  python3 "$here/images.py" "$home/debian/bin/busybox" "$home/images"
  say "Kubernetes $VERSION is built in $home"
  exit 0
}

if is_built; then finish; fi
for program in apt-get dpkg-deb python3; do
  command -v "$program" >/dev/null || stop "$program is missing: Kubernetes is built from Debian packages, on Debian or Ubuntu"
done
mkdir -p "$home"
exec 9>"$home/build.lock"
flock 9
if is_built; then finish; fi
rm -rf "$work"
tree=$work/gopath/src/k8s.io/kubernetes
export GOROOT=$home/debian/usr/lib/go-$GO GOPATH=$work/gopath GOCACHE=$work/gocache GO111MODULE=off CGO_ENABLED=0 GOGC=400
export PATH=$GOROOT/bin:$PATH
prepare_apt
download
unpack
say "completing the source tree"
complete_the_tree
say "compiling: this takes some minutes"
compile
clean_up
finish
