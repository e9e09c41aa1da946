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
import { CliError } from '../exit.ts'

export interface CallerOptions {
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
