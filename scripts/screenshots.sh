#!/bin/bash
# SPDX-License-Identifier: MIT
# Takes the pictures of docs/screenshots: what is typed, a menu, a block taller
# than the window, :view, a plot, an error; each on a dark and a light ground.
#
#   scripts/screenshots.sh [NACRE [FOLDER [PICTURE...]]]
#
# Needs Xvfb, xterm, xdotool, ImageMagick and the font DejaVu Sans Mono.
set -euo pipefail

nacre=$(realpath "${1:-build/nacre}")
folder=$(realpath "${2:-docs/screenshots}")
shift $(($# < 2 ? $# : 2))

key() {
  local k
  for k in "$@"; do xdotool key --delay 40 "$k"; done
  sleep 0.2
}
text() { xdotool type --delay 12 "$1"; sleep 0.2; }
line() { text "$1"; key Return; }

# A function for each picture: what is typed. `rows' is the window's height.
typing() {
  line 'x = nacre.randn(64, 10)'
  line 'function loss(net, x, y)'
  line 'local out = net(x)'
  key Return
  text 'return nacre.nn.functional.cross_entropy(out, y, {red'
}
menu() {
  line 'x = nacre.randn(64, 10)'
  text 'x:soft'
  key Tab Tab Tab
}
tall_block() {
  local i
  line 'function f(x)'
  for i in $(seq 1 30); do line "x = x * $i + $i"; done
  text 'return x'
  for i in $(seq 1 20); do key Up; done
}
view() {
  line 'w = nacre.randn(2000, 40)'
  line ':view w'
  sleep 0.5
  key Down Down Down Right Right s
}
plot() {
  line ':plot math.sin 0 12'
}
error() {
  line 'x = nacre.randn(64, 10)'
  line 'w = nacre.randn(20, 10)'
  line 'y = x.sum(dim=0)'
  key Right Return
  line 'x:mm(w)'
}
declare -A rows=([typing]=12 [menu]=26 [tall_block]=14 [view]=14 [plot]=15
                 [error]=18)

take() { # PICTURE GROUND TEXT-COLOUR BACKGROUND
  local home terminal window
  home=$(mktemp -d)
  HOME=$home LANG=C.UTF-8 COLORTERM=truecolor xterm -geometry "88x${rows[$1]}" \
    -fa 'DejaVu Sans Mono' -fs 11 -fg "$3" -bg "$4" -cr "$3" -b 8 \
    -tn xterm-256color -e "$nacre" --seed 0 --threads 1 &
  terminal=$!
  sleep 1.5
  window=$(xdotool search --onlyvisible --class xterm | tail -1)
  xdotool windowfocus "$window"
  sleep 0.2
  "$1"
  sleep 1
  import -window "$window" png:- |
    convert png:- -flatten -trim +repage -bordercolor "$4" -border 8 \
      -colors 24 "png8:$folder/$1-$2.png"
  kill "$terminal"
  wait "$terminal" 2>/dev/null || true
  rm -rf "$home"
}

export DISPLAY=:97
Xvfb "$DISPLAY" -screen 0 1200x900x24 >/dev/null 2>&1 &
trap 'kill %1' EXIT
sleep 1
if [ $# = 0 ]; then set -- "${!rows[@]}"; fi
for picture in "$@"; do
  take "$picture" dark '#d0d0d0' '#1c1c1c'
  take "$picture" light '#202020' '#ffffff'
done
