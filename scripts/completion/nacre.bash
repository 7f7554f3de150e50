# SPDX-License-Identifier: MIT
# Completion of nacre for bash.  The options are those that the program itself
# lists, so that they are those of the version that is installed.

_nacre_options() { # _nacre_options PROGRAM [--test]
  "$@" --help 2>/dev/null | sed '/^usage:/d' |
    grep -oE -- '(^|[ ,])--?[A-Za-z][A-Za-z-]*' | tr -d ' ,' | sort -u
}

# What may follow --OPTION=: the words of "--OPTION=a|b|c".
_nacre_choices() { # _nacre_choices PROGRAM OPTION
  "$1" --help 2>/dev/null |
    sed -n "s/^ *$2=\([a-z|]*\).*/\1/p" | tr '|' ' '
}

# The extensions of files of tensors: "npy|npz|...".
_nacre_extensions() { # _nacre_extensions PROGRAM
  "$1" --help 2>/dev/null | sed -n 's/ \./|/g; s/^ |\([a-z0-9|]*\)$/\1/p'
}

_nacre() {
  local IFS=$' \t\n' word=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]}
  local before=${COMP_WORDS[COMP_CWORD - 1]} mode=
  [[ ${COMP_WORDS[1]-} == --test && $COMP_CWORD -gt 1 ]] && mode=--test
  COMPREPLY=()
  if [[ $word == = ]]; then # bash makes "=" a word of its own
    word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  case $before in
    -e | -l | -p | --seed | --threads | --width | -k | -j) return ;;
    --device) COMPREPLY=($(compgen -W 'cpu cuda auto' -- "$word")) && return ;;
    --dtype) COMPREPLY=($(compgen -W 'float16 bfloat16 float32 float64' \
      -- "$word")) && return ;;
    --color | --nan)
      COMPREPLY=($(compgen -W "$(_nacre_choices "$program" "$before")" \
        -- "$word"))
      return ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$(_nacre_options "$program" $mode)" -- "$word"))
  elif [[ $mode == --test ]]; then
    COMPREPLY=($(compgen -f -X '!*.@(nacre|md|lua)' -- "$word")
      $(compgen -d -- "$word"))
  else
    COMPREPLY=($(compgen -f -X "!*.@(lua|$(_nacre_extensions "$program"))" \
      -- "$word") $(compgen -d -- "$word"))
  fi
}

shopt -s extglob
complete -o filenames -F _nacre nacre
