/** The commands of the terminal, in the order in which `/help` shows them. */
import type { TerminalCommand } from '../terminal.ts'
import { say } from '../text.ts'
import { audit, inbox } from './inbox.ts'
import { allow, budgets } from './policy.ts'
import { attach, prompts, resources, servers } from './servers.ts'
import { cost, state, undo, whyCommand } from './turns.ts'

function help(commands: () => readonly TerminalCommand[]): TerminalCommand {
  return {
    name: 'help',
    about: 'what can be typed',
    run: async ({ screen }) => {
      const { paint } = screen
      screen.line(` Type to talk. What begins with a slash is a command, or a prompt of a server; // sends a slash.`)
      const rows = commands().map(({ name, takes = '', about }) => [`/${name} ${takes}`, about] as const)
      const width = Math.max(...rows.map(([typed]) => typed.length))
      for (const [typed, about] of rows) screen.line(say` ${paint.name(typed.padEnd(width))} ${paint.dim(about)}`)
      screen.line(say` ${paint.dim('Ctrl-C stops what runs, twice ends; Ctrl-D ends. Tab completes.')}`)
      return undefined
    },
  }
}

const quit: TerminalCommand = {
  name: 'quit',
  aliases: ['exit', 'q', 'bye'],
  about: 'ends; all is there again at the next start',
  run: async () => true,
}

const all: readonly TerminalCommand[] = [
  help(() => all),
  servers,
  resources,
  attach,
  prompts,
  inbox,
  whyCommand,
  cost,
  budgets,
  state,
  undo,
  allow,
  audit,
  quit,
]

export const commands: ReadonlyMap<string, TerminalCommand> = new Map(all.map(command => [command.name, command]))

const byAlias = new Map(all.flatMap(command => (command.aliases ?? []).map(alias => [alias, command] as const)))

/** By its name or by another one that people type for it. */
export function commandNamed(name: string): TerminalCommand | undefined {
  return commands.get(name) ?? byAlias.get(name)
}
