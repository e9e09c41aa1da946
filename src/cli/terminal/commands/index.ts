/** The commands of the terminal, in the order in which `/help` shows them. */
import type { TerminalCommand } from '../terminal.ts'
import { say } from '../text.ts'
import { policyCommands } from './policy.ts'
import { serverCommands } from './servers.ts'
import { turnCommands } from './turns.ts'

/** `/help`. */
const help: TerminalCommand = {
  name: 'help',
  about: 'shows the commands',
  run: async ({ screen }) => {
    const { paint } = screen
    screen.line(
      ' Type a message to talk to the agent. A line that starts with / is a command or a prompt of a server; // sends a slash.',
    )
    const rows = commands.map(({ name, takes = '', about }) => [`/${name} ${takes}`, about] as const)
    const width = Math.max(...rows.map(([typed]) => typed.length))
    for (const [typed, about] of rows) screen.line(say` ${paint.name(typed.padEnd(width))} ${paint.dim(about)}`)
    screen.line(say` ${paint.dim('Ctrl-C stops the running turn; Ctrl-C twice or Ctrl-D ends. Tab completes.')}`)
  },
}

/** `/console`. */
const page: TerminalCommand = {
  name: 'console',
  about: 'prints a new link to the web console',
  run: async ({ screen, page: opened }) => {
    if (opened === undefined) screen.line(' There is no web console. Start with --web to have one.')
    else screen.line(say` ${screen.paint.name(opened.newLink())} ${screen.paint.dim('(once, 10 min)')}`)
  },
}

/** `/quit`. */
const quit: TerminalCommand = {
  name: 'quit',
  aliases: ['exit', 'q', 'bye'],
  about: 'ends; the next start continues where you left off',
  ends: true,
  run: async () => {},
}

/** In the order of the help. */
export const commands: readonly TerminalCommand[] = [
  help,
  ...Object.values(serverCommands),
  policyCommands.inbox,
  turnCommands.why,
  turnCommands.cost,
  policyCommands.budgets,
  turnCommands.state,
  turnCommands.undo,
  policyCommands.allow,
  policyCommands.audit,
  page,
  quit,
]
