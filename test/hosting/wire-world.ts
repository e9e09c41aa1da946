/** For tests of whole hosts: one raw server with sets of every kind on some carrier, and a host that has enabled most of them. */
import { onTestFinished } from 'vitest'
import { createHost, type Host, type HostOptions, type PolicyRules } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { mcpl } from '../live/raw/host.ts'
import { type Carrier, type RawOptions, type RawServer, rawServer } from '../live/raw/raw-server.ts'
import type { Frame } from '../live/raw/script.ts'

export const sets = ['lab.push', 'lab.hooks', 'lab.think', 'lab.files', 'lab.notes']
export const think = { featureSet: 'lab.think', messages: [{ role: 'user', content: 'Sum it up' }] }

/** Its hooks say nothing, unless they are told otherwise. */
export async function served(carrier: Carrier, answers: RawOptions['answers'] = {}, more: RawOptions = {}): Promise<RawServer> {
  const none = { featureSet: 'lab.hooks', contextInjections: [] }
  const hooks = { 'context/beforeInference': () => none, 'context/afterInference': () => ({ featureSet: 'lab.hooks' }) }
  const raw = await rawServer(carrier, { mcpl, ...more, answers: { ...hooks, ...answers } })
  onTestFinished(() => raw.close())
  return raw
}

export const entry = ({ target, options }: RawServer, live: Frame = {}) => ({
  target,
  connect: options,
  live: { enable: sets, disable: ['lab.off'], ...live },
})

export async function hosting(raw: RawServer, options: HostOptions = {}, live?: Frame): Promise<Host> {
  const host = await createHost({ model: scripted('Fine.', { again: true }), servers: { raw: entry(raw, live) }, ...options })
  onTestFinished(() => host.close())
  return host
}

/** Without a session the host listens anew with what holds now; this server sends nothing twice. */
export async function update(host: Host, raw: RawServer, rules: PolicyRules): Promise<void> {
  const listened = raw.script.of('live/listen').length
  await host.policy.update(rules)
  if (listened > 0) await raw.script.hears('live/listen', listened + 1)
}

/** A tool that names its set, as a server lists it. */
export const toolOf = (name: string, featureSet: string) => ({
  name,
  inputSchema: { type: 'object' },
  _meta: { 'dev.vivarium/live': { featureSet } },
})

/** The answers of a server that has these tools, each of which says that it is done. */
export const having = (...tools: readonly Frame[]) => ({
  'tools/list': () => ({ tools, ttlMs: 0, cacheScope: 'private' }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'done' }] }),
})
