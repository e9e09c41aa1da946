/** The words behind `vivarium gateway` for whoever runs one: what waits, what changed, what was done. Each works beside the gateway, on its store. */
import { type Duration, toMilliseconds } from '../../core/clock.ts'
import type { GatewayConfig } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { portOf } from '../port.ts'
import type { CommandLike, VerbCall } from '../program.ts'
import type { AnswerOptions } from './approvals.ts'
import type { AuditOptions } from './audit.ts'

const fileAbout = 'The file of the gateway'
const formats = { choices: ['text', 'json'], fallback: 'text' } as const

export function declareOperating(command: CommandLike, io: Io): void {
  answering(command.command('approvals', 'What waits for a yes: calls, changed tools, changed commands'), false, io)
  answering(command.command('pins', 'Tools and commands that are not as they were first seen, old and new'), true, io)
  status(command.command('status', 'Whether it is ready, and how each of its servers is'), io)
  auditing(command.command('audit', 'What was done, by whom; --verify: whether anybody changed what was written'), io)
}

function answering(command: CommandLike, pins: boolean, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--approve <id>', `Say yes to it; may be repeated${pins ? '; all: to all that are listed' : ''}`, { repeated: true })
    .option('--refuse <id>', 'Say no to it', { repeated: true })
    .option('--show <id>', 'Show all of it, however long; with --approve, before it is approved', { repeated: true })
    .option('--as <name>', 'Who answers, for the audit log (default: the user of this machine)')
    .option('--format <kind>', 'text for people, json for programs', formats)
    .action<AnswerOptions>(async ({ words: [file = ''], options }: VerbCall<AnswerOptions>) => {
      const { approvals } = await import('./approvals.ts')
      return approvals(await configOf(file, io), pins, options, io)
    })
}

function status(command: CommandLike, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--port <number>', 'Where it listens (default: as the file says, else 7420)', { parse: portOf })
    .option('--format <kind>', 'text for people, json for programs', formats)
    .action<{ readonly port?: number; readonly format: 'text' | 'json' }>(async ({ words: [file = ''], options }) => {
      const { showStatus } = await import('./status.ts')
      return showStatus(await configOf(file, io), options, io)
    })
}

function auditing(command: CommandLike, io: Io): void {
  command
    .argument('<file>', fileAbout)
    .option('--since <time>', 'From then on: 2h, 3d (ago), or a date (default: 1d)', { parse: timeOf })
    .option('--until <time>', 'Before then', { parse: timeOf })
    .option('--client <name>', 'Of this client')
    .option('--subject <id>', 'Of whom tokens name so')
    .option('--server <name>', 'At this server')
    .option('--tool <name>', 'About this tool, by its own name or that which clients see')
    .option('--outcome <word>', 'success, failure, refused, replayed, held, approved')
    .option('--limit <number>', 'The last so many (default: 100)', { parse: countOf })
    .option('--verify', 'Compute the chain anew, and fail where a line is not what was written')
    .option('--format <kind>', 'text for people, json for programs: a line each', formats)
    .examples([['vivarium gateway audit gateway.yaml --tool delete_file --since 2d', 'who deleted that yesterday?']])
    .action<Partial<AuditOptions>>(async ({ words: [file = ''], options }) => {
      const { showAudit } = await import('./audit.ts')
      const config = await configOf(file, io)
      return showAudit(config, { format: 'text', since: timeOf('1d'), limit: 100, ...options }, io)
    })
}

function countOf(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count > 0 && count <= 100_000) return count
  throw new TypeError('Give a number from 1 to 100000')
}

/** Mistakes in rules do not matter here. */
async function configOf(file: string, io: Io): Promise<GatewayConfig<TrustSettings>> {
  const { readGatewayFile } = await import('../../gateway/index.ts')
  return readGatewayFile(file, { env: io.env }).catch(error => {
    throw new CliError(1, error instanceof Error ? error.message : String(error), 'Give the path of a YAML or JSON file')
  })
}

/** A date, or how long ago. */
function timeOf(text: string): number {
  if (/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(text)) return Date.now() - toMilliseconds(text as Duration)
  const time = Date.parse(text)
  if (Number.isNaN(time))
    throw new TypeError(`"${text.slice(0, 40)}" is no time: write 2h, 1d, 2026-07-28 or 2026-07-28T12:00:00Z`)
  return time
}
