/** Faults in a few words: a result changed, a member lost, a refusal waved through. */
import { isRecord } from '../../../src/jsonrpc/message.ts'
import type { Fault, Json } from './box.ts'

const NS = 'dev.vivarium'

export function objectIn(value: unknown, ...path: readonly string[]): Json {
  let at: unknown = value
  for (const member of path) at = isRecord(at) ? at[member] : undefined
  return isRecord(at) ? at : {}
}

/** The `_meta` of a request under an extension. */
export const wishIn = (request: Json, extension: string): Json => objectIn(request, 'params', '_meta', `${NS}/${extension}`)

export const toolIn = (request: Json): unknown => objectIn(request, 'params')['name']

/** Changes the results of a method. */
export function result(method: string, change: (result: Json, request: Json) => Json): Fault {
  return {
    answer: (answer, request) =>
      request['method'] === method && isRecord(answer['result'])
        ? { ...answer, result: change(answer['result'], request) }
        : answer,
  }
}

/** Changes what results of calls say under an extension; undefined takes it away. */
export function saying(extension: string, change: (said: Json, result: Json, request: Json) => Json | undefined): Fault {
  return result('tools/call', (given, request) => {
    const meta = objectIn(given, '_meta')
    const said = meta[`${NS}/${extension}`]
    if (said === undefined) return given
    const { [`${NS}/${extension}`]: _, ...rest } = meta
    const changed = change(isRecord(said) ? said : {}, given, request)
    return { ...given, _meta: changed === undefined ? rest : { ...rest, [`${NS}/${extension}`]: changed } }
  })
}

/** The problem of refused calls. */
export const problem = (change: (problem: Json) => Json | undefined): Fault => saying('problem', said => change(said))

/** Calls that are refused by this code look as if they had been made. */
export function waved(...codes: readonly string[]): Fault {
  return result('tools/call', given => {
    const code = objectIn(given, '_meta', `${NS}/problem`)['code']
    if (typeof code !== 'string' || !codes.includes(code)) return given
    return { ...done(given), content: [{ type: 'text', text: 'Done' }] }
  })
}

/** The shell of a complete result. */
export function done(given: Json): Json {
  return given['resultType'] === undefined ? {} : { resultType: 'complete' }
}

/** Changes requests of a method on their way in. */
export function request(method: string, change: (params: Json, message: Json) => Json): Fault {
  return {
    incoming: message =>
      message['method'] === method ? { ...message, params: change(objectIn(message, 'params'), message) } : message,
  }
}

/** Calls come without what they say under an extension. */
export function unsaid(extension: string, when: (said: Json) => boolean = () => true): Fault {
  return request('tools/call', params => {
    const meta = objectIn(params, '_meta')
    const { [`${NS}/${extension}`]: said, ...rest } = meta
    return said === undefined || !when(isRecord(said) ? said : {}) ? params : { ...params, _meta: rest }
  })
}

/** The same for calls of one tool. */
export function unsaidOf(extension: string, tool: string): Fault {
  const fault = unsaid(extension)
  return { incoming: (message, box) => (toolIn(message) === tool ? fault.incoming?.(message, box) : message) }
}

/** What the server says by itself, of one method. */
export function own(method: string, change: (message: Json) => Json | readonly Json[] | undefined): Fault {
  return { own: message => (message['method'] === method ? change(message) : message) }
}

/** The first answer to something is given again to whoever asks for the same, without asking the server. */
export function remembered(when: (message: Json) => string | undefined, good: (answer: Json) => boolean = () => true): Fault {
  const answers = new Map<string, Json>()
  return {
    incoming: (message, box) => {
      const key = when(message)
      const known = key === undefined ? undefined : answers.get(key)
      if (known === undefined) return message
      box.say({ ...known, id: message['id'] })
      return undefined
    },
    answer: (answer, asked) => {
      const key = when(asked)
      if (key !== undefined && good(answer)) answers.set(key, answer)
      return answer
    },
  }
}

export const isMade = (answer: Json): boolean => isRecord(answer['result']) && answer['result']['isError'] !== true
