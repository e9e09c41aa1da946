/** What a client tells its author: by the log, and raw to who asks for that. Silent unless asked. */
import { logFrom, type Trace, traceInto } from '../core/log-trace.ts'
import { secretValues } from '../core/redact.ts'
import type { ConnectOptions } from './options.ts'
import type { Target } from './target.ts'

/** Events that mean a mistake in the author's own code. */
const mistakes: ReadonlySet<string> = new Set(['internal', 'handler-failed', 'notification-failed'])

export function clientTrace(target: Target, { log, headers = {}, onTrace }: ConnectOptions): Trace | undefined {
  const chosen = logFrom(log, 'silent')
  if (chosen.level === 'silent') return onTrace
  const env = typeof target === 'object' && 'command' in target ? (target.env ?? {}) : {}
  const secrets = [...secretValues(headers), ...secretValues(env, true)]
  const write = traceInto(chosen.child(named(target)), { mistakes, secrets })
  if (onTrace === undefined) return write
  return (event, detail, caller) => {
    onTrace(event, detail)
    write(event, detail, caller)
  }
}

/** Without query and arguments, where secrets may stand. */
function named(target: Target): Readonly<Record<string, string>> {
  if (typeof target === 'string' || target instanceof URL) {
    const { origin, pathname } = new URL(target)
    return { target: origin + pathname }
  }
  return 'command' in target ? { target: target.command } : {}
}
