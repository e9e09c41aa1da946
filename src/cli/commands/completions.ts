/** `vivarium completions`: a script that a shell reads once, and that asks this command for words after that. */
import { connect } from '../../client/index.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { knownOffers, lineOf, type Offers, offersOf, propose, rememberOffers, type SeenCatalog } from '../completing.ts'
import { optionsFor, targetFor } from '../connecting.ts'
import { CliError, type Io } from '../io.ts'
import { listsOf } from '../lists.ts'
import type { Verb } from '../program.ts'
import { resolveTarget } from '../target.ts'

/** `vivarium completions`, and `completions words`, which the scripts call. */
export const completions: Verb = (command, io) => {
  command
    .argument('<shell>', 'bash, zsh or fish')
    .note(
      'Verbs, options, their values and files are proposed, the servers of your config files, and of a server the tools, their\narguments, the resources and prompts: of an address at once, of a program or a file after it was listed or called, for a key starts nothing.',
    )
    .examples([
      ['vivarium completions bash >> ~/.bashrc', 'bash'],
      ['vivarium completions zsh >> ~/.zshrc', 'zsh; or as a file _vivarium on the fpath'],
      ['vivarium completions fish > ~/.config/fish/completions/vivarium.fish', 'fish'],
    ])
    .action(async ({ words: [shell = ''], command: typed = [] }) => {
      if (shell === 'words') return words(typed, io)
      const known = shells.find(each => each === shell)
      if (known === undefined) throw new CliError(`There are no completions for ${clip(shell)}`, `There are ${shells.join(', ')}`)
      io.output.write(scripts[known])
      return 0
    })
}

/** What a shell asks for: all words of its line, the last one as far as it is typed. */
async function words(typed: readonly string[], io: Io): Promise<number> {
  const line = {
    before: typed.slice(0, -1),
    current: typed.at(-1) ?? '',
    offers: (target: readonly string[]) => offersAt(target, io),
  }
  const { words: found, files } = await propose(line, io)
  for (const word of found) io.output.write(lineOf(word))
  if (files) io.output.write(`${filesMark}\n`)
  return 0
}

/** How long somebody waits after a key. */
const askMs = 2_500
/** How long what an address offered is taken for what it offers. */
const freshMs = 600_000

/** What was seen before; an address is asked where that is not there or too old. A key that is pressed starts no program. */
async function offersAt(target: readonly string[], io: Io): Promise<Offers | undefined> {
  const known = knownOffers(target, io.env)
  const [first = ''] = target
  if (!/^https?:\/\//i.test(first)) return known
  if (known !== undefined && known.at >= Date.now() - freshMs) return known
  const seen = await ask(target, io).catch(() => undefined)
  if (seen === undefined) return known
  rememberOffers(target, seen, io.env)
  return offersOf(seen)
}

/** What an address offers, asked without questions to the user. */
async function ask(target: readonly string[], io: Io): Promise<SeenCatalog> {
  const quiet: Io = { ...io, interactive: false }
  const resolved = await resolveTarget(target, quiet)
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(askMs)])
  await using client = await connect(targetFor(resolved, {}, quiet), {
    ...optionsFor(resolved, { auth: true }, quiet),
    signal,
    timeout: askMs,
  })
  return (await listsOf(client, new Set())).lists
}

// What each shell reads once: it asks this command for words, and knows itself only how to show them.

/** The shells that there is a script for. */
const shells = ['bash', 'zsh', 'fish'] as const

/** Stands in the answer where files may be proposed, too. */
const filesMark = '@files'

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
const scripts: Readonly<Record<(typeof shells)[number], string>> = { bash, zsh, fish }
