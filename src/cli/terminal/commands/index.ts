/** The commands of the terminal, in the order in which `/help` shows them. */
import type { TerminalCommand } from '../terminal.ts'
import { say } from '../text.ts'
import { policyCommands } from './policy.ts'
import { serverCommands } from './servers.ts'
import { turnCommands } from './turns.ts'

/** `/help`. It gets the list as a function, for it is part of it. */
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
    },
  }
}

/** `/quit`. */
const quit: TerminalCommand = {
  name: 'quit',
  aliases: ['exit', 'q', 'bye'],
  about: 'ends; all is there again at the next start',
  ends: true,
  run: async () => {},
}

/** In the order of the help. */
const all: readonly TerminalCommand[] = [
  help(() => all),
  ...Object.values(serverCommands),
  policyCommands.inbox,
  turnCommands.why,
  turnCommands.cost,
  policyCommands.budgets,
  turnCommands.state,
  turnCommands.undo,
  policyCommands.allow,
  policyCommands.audit,
  quit,
]

/** The commands by name. */
export const commands: ReadonlyMap<string, TerminalCommand> = new Map(all.map(command => [command.name, command]))

/** The commands by their other names. */
const byAlias = new Map(all.flatMap(command => (command.aliases ?? []).map(alias => [alias, command] as const)))

/** By its name or by another one that people type for it. */
export function commandNamed(name: string): TerminalCommand | undefined {
  return commands.get(name) ?? byAlias.get(name)
}
