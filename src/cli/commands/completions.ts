/** `vivarium completions`: a script that a shell reads once, and that asks this command for words after that. */
import { clip } from '../../jsonrpc/limits.ts'
import { CliError } from '../exit.ts'
import type { Verb } from '../program.ts'
import { placesOf, readSource, sourcesOf } from '../sources.ts'
import { verbs } from '../verbs.ts'

const shells = ['bash', 'zsh', 'fish'] as const

export const completions: Verb = {
  name: 'completions',
  summary: 'Completions for bash, zsh or fish',
  plain: true,
  declare(command, io) {
    command
      .argument('<shell>', 'bash, zsh or fish; `servers` prints the names of configured servers')
      .examples([
        ['vivarium completions bash >> ~/.bashrc', 'bash'],
        ['vivarium completions zsh > ~/.zfunc/_vivarium', 'zsh'],
        ['vivarium completions fish > ~/.config/fish/completions/vivarium.fish', 'fish'],
      ])
      .action(async ({ words: [shell = ''] }) => {
        if (shell === 'servers') {
          for (const name of await serverNames(io.env)) io.output.write(`${name}\n`)
          return 0
        }
        const known = shells.find(each => each === shell)
        if (known === undefined)
          throw new CliError(1, `There are no completions for ${clip(shell)}`, `There are ${shells.join(', ')}`)
        io.output.write(scripts[known]())
        return 0
      })
  },
}

/** Names that can stand for a server, with the program that has it where that is needed. */
async function serverNames(env: Readonly<Record<string, string | undefined>>): Promise<readonly string[]> {
  const places = placesOf(env)
  const found = new Map<string, Set<string>>()
  for (const source of sourcesOf(places)) {
    const config = await readSource(source, places)
    for (const name of config?.servers.keys() ?? [])
      if (/^[\w.@/-]+$/.test(name)) found.set(name, (found.get(name) ?? new Set()).add(source.name))
  }
  return [...found]
    .flatMap(([name, sources]) => (sources.size === 1 ? [name] : [...sources].map(source => `${source}:${name}`)))
    .sort()
}

const names = (): string => [...verbs.map(({ name }) => name), 'help'].join(' ')

const scripts: Readonly<Record<(typeof shells)[number], () => string>> = {
  bash: () => `# vivarium completions for bash
_vivarium() {
  local word="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names()}" -- "$word"))
  elif [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$(vivarium "\${COMP_WORDS[1]}" --help 2>/dev/null | grep -oE -- '--[a-z-]+' | sort -u)" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word") $(compgen -W "$(vivarium completions servers 2>/dev/null)" -- "$word"))
  fi
}
complete -o filenames -F _vivarium vivarium
`,
  zsh: () => `#compdef vivarium
# vivarium completions for zsh
_vivarium() {
  local -a verbs
  verbs=(
${verbs.map(({ name, summary }) => `    '${name}:${summary.replaceAll("'", '').replaceAll(':', ' -')}'`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe 'verb' verbs
  elif [[ "\${words[CURRENT]}" == -* ]]; then
    compadd -- \${(f)"$(vivarium "\${words[2]}" --help 2>/dev/null | grep -oE -- '--[a-z-]+' | sort -u)"}
  else
    _files
    compadd -- \${(f)"$(vivarium completions servers 2>/dev/null)"}
  fi
}
compdef _vivarium vivarium
`,
  fish: () => `# vivarium completions for fish
complete -c vivarium -n __fish_use_subcommand -f
${verbs
  .map(({ name, summary }) => `complete -c vivarium -n __fish_use_subcommand -a ${name} -d '${summary.replaceAll("'", '')}'`)
  .join('\n')}
complete -c vivarium -n 'not __fish_use_subcommand' -a '(vivarium completions servers 2>/dev/null)'
complete -c vivarium -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' -a '(vivarium (commandline -opc)[2] --help 2>/dev/null | string match -ar -- "--[a-z-]+" | sort -u)'
`,
}
