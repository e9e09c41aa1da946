/** Holds a driver against the memory store: the same random commits, with the same outcomes and the same contents after each. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Committed, Conflict, Op, Store } from '../../src/stores/store.ts'
import type { StoreUnderTest } from './contract.ts'

/** A step whose version is named by the key that had it: versions differ between drivers, what they mean does not. */
type Draft = (versionOf: (key: string) => number) => Op

const key = fc.constantFrom('a', 'b', 'a/1', 'a/2', 'ä', '\u{1f600}')
const log = fc.constantFrom('l', 'm')
const value = fc.oneof(fc.constantFrom('0', '7', '-3', 'x', ''), fc.string({ unit: 'grapheme', maxLength: 8 }).map(clean))
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined })

const draft: fc.Arbitrary<Draft> = fc.oneof(
  fc.record({ key, absent: fc.boolean() }).map(
    ({ key, absent }): Draft =>
      versionOf => ({ op: 'check', key, version: absent ? undefined : versionOf(key) }),
  ),
  fc.record({ key, value, when: fc.constantFrom('always', 'absent', 'version') }).map(
    ({ key, value, when }): Draft =>
      versionOf => {
        if (when === 'absent') return { op: 'put', key, value, ifAbsent: true }
        return when === 'version' ? { op: 'put', key, value, ifVersion: versionOf(key) } : { op: 'put', key, value }
      },
  ),
  fc.record({ key, named: fc.boolean() }).map(
    ({ key, named }): Draft =>
      versionOf =>
        named ? { op: 'delete', key, ifVersion: versionOf(key) } : { op: 'delete', key },
  ),
  fc.record({ key, by: fc.integer({ min: -9, max: 9 }), max: optional(fc.integer({ min: -5, max: 20 })) }).map(
    ({ key, by, max }): Draft =>
      () =>
        max === undefined ? { op: 'add', key, by } : { op: 'add', key, by, max },
  ),
  fc.record({ log, value, at: optional(fc.integer({ min: 1, max: 6 })) }).map(
    ({ log, value, at }): Draft =>
      () =>
        at === undefined ? { op: 'append', log, value } : { op: 'append', log, value, at },
  ),
  fc.record({ log, before: fc.integer({ min: 0, max: 8 }) }).map(
    ({ log, before }): Draft =>
      () => ({ op: 'trim', log, before }),
  ),
)

export function storeModel(name: string, open: () => Promise<StoreUnderTest>, numRuns: number): void {
  test(`${name}: any commits have the outcomes and leave the contents that they have in memory`, async () => {
    const tested = await open()
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(draft, { maxLength: 5 }), { maxLength: 12 }), async commits => {
        const prefix = `${++run}/`
        const sides = [new Side(tested.store, prefix), new Side(memoryStore(), prefix)] as const
        for (const drafts of commits) {
          const [found, wanted] = await Promise.all(sides.map(side => side.commit(drafts)))
          expect(found).toEqual(wanted)
          expect(await sides[0].contents()).toEqual(await sides[1].contents())
        }
      }),
      { numRuns },
    )
    await tested.close()
  }, 60_000)
}

/** A store, a part of it that is this run's own, and the last version it gave for each key. */
class Side {
  readonly #store: Store
  readonly #prefix: string
  readonly #versions = new Map<string, number>()

  constructor(store: Store, prefix: string) {
    this.#store = store
    this.#prefix = prefix
  }

  async commit(drafts: readonly Draft[]): Promise<unknown> {
    const ops = drafts.map(make => make(key => this.#versions.get(key) ?? Number.MAX_SAFE_INTEGER))
    const outcome = await this.#store.commit(ops.map(op => within(this.#prefix, op)))
    if (outcome.ok) this.#remember(ops, outcome)
    return comparable(outcome)
  }

  async contents(): Promise<unknown> {
    const logs = await Promise.all(['l', 'm'].map(log => this.#store.read(this.#prefix + log)))
    return { logs, keys: (await this.#store.scan(this.#prefix)).map(entry => [entry.key, entry.value]) }
  }

  #remember(ops: readonly Op[], { results }: Committed): void {
    for (const [i, op] of ops.entries()) {
      const version = results[i]?.version
      if (version !== undefined && 'key' in op) this.#versions.set(op.key, version)
    }
  }
}

function within(prefix: string, op: Op): Op {
  return 'log' in op ? { ...op, log: prefix + op.log } : { ...op, key: prefix + op.key }
}

function comparable(outcome: Committed | Conflict): unknown {
  if (!outcome.ok) return outcome
  return outcome.results.map(({ version, ...result }) => ({ ...result, versioned: version !== undefined }))
}

function clean(text: string): string {
  return text.toWellFormed().replaceAll('\0', '')
}
