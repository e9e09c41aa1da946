/** What the messages of a client must be, and what must be there to judge them: the words that tables for clients are written with. */
import { type CheckResult, fitsPattern, type JsonPattern, objectIn } from '../expectations.ts'
import { extensionId } from '../said.ts'
import type { Json } from '../scenario.ts'
import type { Check, ClientNeed } from './define.ts'
import type { LoggedMessage, Observation, StepReport } from './log.ts'

/** Some messages of the client: requests of a method (`*`: all), or what a function finds. */
export type Select = string | ((seen: Observation) => readonly LoggedMessage[])

function selected(select: Select, seen: Observation): readonly LoggedMessage[] {
  return typeof select === 'function' ? select(seen) : seen.requests(select === '*' ? undefined : select)
}

/** All that the client sent. */
export function everything(seen: Observation): readonly LoggedMessage[] {
  return seen.fromClient
}

/** Calls of `test-tool`. */
export function calls(seen: Observation): readonly LoggedMessage[] {
  return seen.calls('test-tool')
}

/** What the client answered when it was asked. */
export function answers(seen: Observation): readonly LoggedMessage[] {
  return seen.answers
}

// ── what they must be ───────────────────────────────────────────────────────────────────────────────────────────────

type MessageCheck = (message: LoggedMessage, seen: Observation) => CheckResult

/** At least one of these was sent. */
export function some(select: Select): Check {
  return seen => selected(select, seen).length > 0
}

/** None of these was sent. */
export function none(select: Select, fits: (message: LoggedMessage, seen: Observation) => boolean = () => true): Check {
  return (seen, { show }) => {
    const odd = selected(select, seen).filter(message => fits(message, seen))
    show(odd.slice(0, 2))
    return odd.length === 0
  }
}

/** Each of these is right. */
export function each(select: Select, check: MessageCheck): Check {
  return (seen, { show }) => {
    for (const message of selected(select, seen)) {
      const result = check(message, seen)
      show([message])
      if (result === false || typeof result === 'string') return result
    }
    return true
  }
}

/** The first of these, which must be there, is right. */
export function first(select: Select, check: MessageCheck): Check {
  return (seen, { show }) => {
    const [message] = selected(select, seen)
    show([message])
    return message !== undefined && check(message, seen)
  }
}

/** So many were sent. */
export function times(select: Select, right: number | ((count: number) => boolean), says?: (count: number) => string): Check {
  return (seen, { show }) => {
    const found = selected(select, seen)
    const { length } = found
    show(found.slice(-4))
    return (typeof right === 'number' ? length === right : right(length)) || (says?.(length) ?? false)
  }
}

/** It holds of all that was seen, which these messages show. */
export function shownBy(select: Select, check: Check): Check {
  return (seen, x, says) => {
    x.show(selected(select, seen).slice(-4))
    return check(seen, x, says)
  }
}

/** What the client reports of a step, where it does, is right. */
export function reported(step: string, check: (entry: StepReport) => CheckResult): Check {
  return shownBy(
    seen => seen.calls(),
    seen => {
      const entry = seen.reported.get(step)
      return entry === undefined || check(entry)
    },
  )
}

/** The client never fetched what is at this path. */
export function unvisited(path: string): Check {
  return seen => seen.visits('GET', path).length === 0
}

/** Its parameters fit. */
export function params(pattern: JsonPattern): MessageCheck {
  return message => fitsPattern(pattern, message.params)
}

/** It has this header, or the header is as it must be. */
export function header(name: string, value: string | undefined): MessageCheck {
  return ({ headers }) => headers[name] === value
}

// ── what must be there to judge ─────────────────────────────────────────────────────────────────────────────────────

/** Needs that it holds. */
export function requires(ok: (seen: Observation) => boolean, why: string): ClientNeed {
  return seen => (ok(seen) ? undefined : why)
}

/** Needs that something of this was sent. */
export function sent(select: Select, why: string): ClientNeed {
  return requires(seen => selected(select, seen).length > 0, why)
}

/** Needs what the client must have declared. */
export function declares(path: string): ClientNeed {
  return requires(seen => seen.has(path), `the client does not declare ${path}`)
}

/** Needs that the client says what came of its steps. */
export const hasReport: ClientNeed = requires(
  seen => seen.reported.size > 0,
  'the client does not report the results of its steps',
)

/** What a request says under the key of an extension. */
export function under(message: Pick<LoggedMessage, 'meta'> | undefined, extension: string): Json {
  return objectIn(message?.meta, extensionId(extension))
}

/** Whether the client knows that a call was not done. */
export function isUndone({ ok, isError }: { readonly ok: boolean; readonly isError?: boolean }): boolean {
  return !ok || isError === true
}
