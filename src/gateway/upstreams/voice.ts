/**
 * What a server that is a command writes on standard error, as whoever runs the gateway gets it: so many lines a second, of bounded
 * length, without the secrets of its own entry. What is left out is counted.
 */
import { createBuckets } from '../../core/bucket.ts'
import type { Clock } from '../../core/clock.ts'
import { isSecretName, redact, secretValues } from '../../core/redact.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { GatewayServer } from './entry.ts'

/** Lines and characters a second, and at once. */
const lineRate = { perSecond: 20, burst: 200 } as const
const charRate = { perSecond: 4_000, burst: 100_000 } as const
const mostChars = 1_000
/** Once something is left out, nothing comes for so long, and then how much it was. */
const silentMs = 1_000

/** Gives a function that takes the lines of one server. */
export function voiceOf(option: GatewayServer, clock: Clock, tell: (line: string) => void): (line: string) => void {
  const lines = createBuckets({ ...lineRate, clock })
  const chars = createBuckets({ ...charRate, clock })
  const secrets = secretsOf(option)
  let left = 0
  const count = (): void => {
    tell(`… ${left} lines left out`)
    left = 0
  }
  return line => {
    if (left > 0 || lines.take('lines') > 0 || chars.take('chars', Math.min(line.length, mostChars)) > 0) {
      if (left++ === 0) clock.setTimeout(count, silentMs, true)
      return
    }
    tell(clip(redact(line, secrets), mostChars))
  }
}

/** All that its entry gives to a server and that may be secret. */
function secretsOf(option: GatewayServer): readonly string[] {
  const entry: unknown = option
  if (!isRecord(entry)) return []
  const { target = entry, headers, auth } = entry
  const named = isRecord(auth) ? Object.entries(auth) : []
  return [
    ...(isRecord(target) ? valuesOf(target['env']) : []),
    ...valuesOf(headers),
    ...named.flatMap(([name, value]) => (typeof value === 'string' && isSecretName(name) ? [value] : [])),
  ]
}

function valuesOf(named: unknown): readonly string[] {
  return isRecord(named) ? secretValues(named as Readonly<Record<string, string>>, true) : []
}
