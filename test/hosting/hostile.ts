/** For tests: a host with servers that are processes of their own, and whose every frame a test writes by hand. */
import { onTestFinished } from 'vitest'
import { createHost, type Host, type HostOptions } from '../../src/host/index.ts'
import type { Model } from '../../src/host/models/model.ts'
import { type RawOptions, type RawServer, rawServer } from '../live/raw/raw-server.ts'

/** Sets of every kind, with a hook that may change answers. */
export const declared = {
  version: '0.2',
  pushEvents: true,
  contextHooks: { beforeInference: true, afterInference: { blocking: true } },
  inferenceRequest: { streaming: true },
  featureSets: {
    push: { description: 'Pushes', uses: ['pushEvents'] },
    hooks: { description: 'Hooks', uses: ['contextHooks.beforeInference', 'contextHooks.afterInference'] },
    think: { description: 'Thinks', uses: ['inferenceRequest'] },
    notes: { description: 'Notes', uses: ['tools'], rollback: true, hostState: true },
  },
}

/** Hooks that say nothing. */
export const quiet = {
  'context/beforeInference': () => ({ featureSet: 'hooks', contextInjections: [] }),
  'context/afterInference': () => ({ featureSet: 'hooks' }),
}

export async function hostile({ answers, ...options }: RawOptions = {}): Promise<RawServer> {
  const raw = await rawServer('stdio', { mcpl: declared, answers: { ...quiet, ...answers }, ...options })
  onTestFinished(() => raw.close())
  return raw
}

export function entry(raw: RawServer, enable: readonly string[] = ['*']) {
  return { target: raw.target, connect: raw.options, live: { enable } }
}

export async function opened(options: HostOptions): Promise<Host> {
  const host = await createHost(options)
  onTestFinished(() => host.close())
  return host
}

export function pushOf(eventId: string, more: Readonly<Record<string, unknown>> = {}) {
  return {
    featureSet: 'push',
    eventId,
    timestamp: '2026-01-23T10:30:00Z',
    payload: { content: [{ type: 'text', text: 'Ring' }] },
    ...more,
  }
}

/** Says one thing, once something has happened. */
export function thinking(said: string, work: () => Promise<unknown>): Model {
  return {
    info: { id: 'thinking', vendor: 'test', contextWindow: 100_000, capabilities: [] },
    async *generate() {
      await work()
      yield { type: 'text', delta: said }
      yield { type: 'end', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 1 } }
    },
  }
}
