/** What each shell reads once: it asks this command for words, and knows itself only how to show them. */

/** Stands in the answer where files may be proposed, too. */
export const filesMark = '@files'

/** Bash cuts words at colons and equal signs: they are put together again, and of a proposal only the last part is given. */
const bash = `# vivarium completions for bash
_vivarium() {
  local line="\${COMP_LINE:0:COMP_POINT}" at word current="" kept="" file
  local -a words=()
  for ((at = 0; at <= COMP_CWORD; at++)); do
    word="\${COMP_WORDS[at]}"
    if [[ $at -eq 0 || "$line" == [[:space:]]* ]]; then
      line="\${line#"\${line%%[![:space:]]*}"}"
      words+=("")
    fi
    [[ $at -eq $COMP_CWORD ]] && word="$line"
    words[\${#words[@]}-1]+="$word"
    line="\${line#"$word"}"
  done
  current="\${words[\${#words[@]}-1]}"
  if [[ "$COMP_WORDBREAKS" == *:* && "$current" == *[:=]* ]]; then kept="\${current%"\${current##*[:=]}"}"; fi
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do
    if [[ "$word" == ${filesMark} ]]; then
      while IFS= read -r file; do
        [[ -d "$file" ]] && file="$file/"
        COMPREPLY+=("$(printf %q "$file")")
      done < <(compgen -f -- "$current")
    elif [[ -n "$word" ]]; then
      COMPREPLY+=("\${word#"$kept"}")
    fi
  done < <(vivarium completions words -- "\${words[@]:1}" 2>/dev/null)
  if [[ \${#COMPREPLY[@]} -eq 1 && "\${COMPREPLY[0]}" == *[=/] ]]; then compopt -o nospace 2>/dev/null; fi
  return 0
}
complete -F _vivarium vivarium
`

/** Works when it is sourced, and as a file \`_vivarium\` on the fpath, which is run as the function that it defines. */
const zsh = `#compdef vivarium
# vivarium completions for zsh
_vivarium() {
  local line word about files=0
  local -a plain pairs
  for line in "\${(@f)$(vivarium completions words -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}"; do
    word="\${line%%$'\\t'*}"
    about="\${line#"$word"}"
    about="\${about#$'\\t'}"
    if [[ "$word" == ${filesMark} ]]; then files=1
    elif [[ "$word" == *= ]]; then pairs+=("\${word//:/\\\\:}\${about:+:$about}")
    elif [[ -n "$word" ]]; then plain+=("\${word//:/\\\\:}\${about:+:$about}")
    fi
  done
  (( \${#plain} )) && _describe -V 'vivarium' plain
  (( \${#pairs} )) && _describe -V 'arguments' pairs -S ''
  (( files )) && _files
}
if [[ "\${funcstack[1]}" == _vivarium ]]; then
  _vivarium "$@"
else
  (( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit -i }
  compdef _vivarium vivarium
fi
`

/** Fish cuts no words, so each proposal is given as it is. */
const fish = `# vivarium completions for fish
function __vivarium_words
  set -l words (commandline -opc)
  set -e words[1]
  set -l current (commandline -ct)
  for line in (vivarium completions words -- $words "$current" 2>/dev/null)
    if test "$line" = ${filesMark}
      __fish_complete_path "$current"
    else
      echo $line
    end
  end
end
complete -c vivarium -f -k -a '(__vivarium_words)'
`

/** The script of each shell. */
export const completionScripts = { bash, zsh, fish }
