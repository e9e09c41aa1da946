/** All that is fuzzed, in the order of the turns. */
import type { Target } from './target.ts'
import { answers } from './targets/answers.ts'
import { clients } from './targets/client.ts'
import { handles } from './targets/handles.ts'
import { headers, heads, media } from './targets/headers.ts'
import { http } from './targets/http.ts'
import { lines } from './targets/lines.ts'
import { live } from './targets/live.ts'
import { parsing } from './targets/parse.ts'
import { patterns, schemas } from './targets/schemas.ts'
import { servers } from './targets/server.ts'
import { events, sse } from './targets/sse.ts'
import { tapes } from './targets/tape.ts'
import { templates } from './targets/templates.ts'

export const targets: readonly Target[] = [
  lines,
  answers,
  sse,
  events,
  parsing,
  templates,
  headers,
  media,
  heads,
  patterns,
  schemas,
  handles,
  http,
  ...servers,
  ...clients,
  live,
  tapes,
]

export function targetNamed(name: string): Target {
  const found = targets.find(target => target.name === name)
  if (found !== undefined) return found
  throw new Error(`There is no target "${name}". There are ${targets.map(target => target.name).join(', ')}`)
}
