/** The commands of the terminal, in the order in which `/help` shows them. */
import type { Command } from '../session.ts'
import { allow } from './allow.ts'
import { audit } from './audit.ts'
import { budgets } from './budgets.ts'
import { cost } from './cost.ts'
import { help } from './help.ts'
import { inbox } from './inbox.ts'
import { prompts } from './prompts.ts'
import { quit } from './quit.ts'
import { attach, resources } from './resources.ts'
import { servers } from './servers.ts'
import { state } from './state.ts'
import { undo } from './undo.ts'
import { why } from './why.ts'

const all: readonly Command[] = [
  help(() => all),
  servers,
  resources,
  attach,
  prompts,
  inbox,
  why,
  cost,
  budgets,
  state,
  undo,
  allow,
  audit,
  quit,
]

export const commands: ReadonlyMap<string, Command> = new Map(all.map(command => [command.name, command]))

const byAlias = new Map(all.flatMap(command => (command.aliases ?? []).map(alias => [alias, command] as const)))

/** By its name or by another one that people type for it. */
export function commandNamed(name: string): Command | undefined {
  return commands.get(name) ?? byAlias.get(name)
}
