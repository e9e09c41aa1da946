/** `vivarium test --client` and `--host`: judges a program that connects, by servers that the kit plays. */
import {
  type Carrier,
  type JudgeClientOptions,
  judgeClient,
  judgeHost,
  type Report,
  type Result,
  type RevisionId,
} from '../../conformance/index.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { CliError } from '../errors.ts'

interface CallerOptions {
  readonly client?: string
  readonly host?: string
  readonly revision?: readonly RevisionId[]
  readonly carrier?: readonly Carrier[]
  readonly only?: RegExp
}

/** Undefined: neither is asked for. */
export function judgeCaller(
  { client, host, revision, carrier, only }: CallerOptions,
  more: { readonly signal: AbortSignal; readonly onResult: (result: Result) => void },
): Promise<Report> | undefined {
  if (client === undefined && host === undefined) return undefined
  if (client !== undefined && host !== undefined)
    throw new CliError(
      1,
      '--client and --host judge one program each',
      'vivarium test --client "COMMAND", then vivarium test --host "COMMAND"',
    )
  const options: JudgeClientOptions = {
    ...more,
    ...(revision === undefined ? {} : { revisions: revision }),
    ...(carrier === undefined ? {} : { carriers: carrier }),
    ...(only === undefined ? {} : { only }),
  }
  return client === undefined ? judgeHost({ command: host ?? '' }, options) : judgeClient({ command: client }, options)
}

/** A program that never asked for anything has not failed, where nobody named a revision: it was not judged. */
export function refuseUnheard(report: Report): Report {
  const [first] = report.results
  const isCell = ({ test_id, status }: Result): boolean => test_id.startsWith('cell/') && status === 'skipped'
  if (first === undefined || !report.results.every(isCell)) return report
  throw new CliError(
    4,
    `The program cannot be judged at any revision. ${clip(first.message, 300)}`,
    'It is started with the address of a server as its last word, and has to connect to it: try it by hand with one',
  )
}
