import { describe, expect, it } from 'vitest'
import type { Exchange } from './exchange.ts'
import type { Layer } from './stages.ts'
import { layerFilter } from './stages.ts'

const exchangeOf = (name: string, meta?: Record<string, unknown>, carried?: Record<string, string>): Exchange =>
  ({ params: { name }, meta, get: () => carried }) as unknown as Exchange

const run: Layer['run'] = (_, next) => next()

/** A layer that counts how often it is asked. */
function counting(more: Partial<Layer>, when: (exchange: Exchange) => boolean): { layer: Layer; asked: () => number } {
  let asked = 0
  const layer: Layer = {
    stage: 'decide',
    run,
    ...more,
    when: exchange => {
      asked++
      return when(exchange)
    },
  }
  return { layer, asked: () => asked }
}

describe('which requests wake a layer', () => {
  it('a layer without hints is asked about every request', () => {
    const { layer, asked } = counting({}, () => false)
    const wakes = layerFilter([layer], 'name')
    wakes(exchangeOf('a'))
    wakes(exchangeOf('b'))
    expect(asked()).toBe(2)
  })

  it('one that looks at marks is asked only of requests that have one, or go on with one', () => {
    const { layer, asked } = counting({ marked: true }, () => true)
    const wakes = layerFilter([layer], 'name')
    expect(wakes(exchangeOf('a'))).toBe(false)
    expect(wakes(exchangeOf('a', { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }))).toBe(false)
    expect(asked()).toBe(0)
    expect(wakes(exchangeOf('a', { 'dev.vivarium/intent': {} }))).toBe(true)
    expect(wakes(exchangeOf('a', undefined, { 'dev.vivarium/idempotency': 'k' }))).toBe(true)
  })

  it('one that looks at targets is asked only of those it is concerned with, and has the last word on them', () => {
    const { layer, asked } = counting(
      { concerns: ({ params }) => params['name'] === 'guarded' },
      exchange => exchange.meta === undefined,
    )
    const wakes = layerFilter([layer], 'name')
    expect(wakes(exchangeOf('plain'))).toBe(false)
    expect(asked()).toBe(0)
    expect(wakes(exchangeOf('guarded'))).toBe(true)
    expect(wakes(exchangeOf('guarded', {}))).toBe(false)
    expect(asked()).toBe(2)
  })

  it('where targets have no name it is asked of every request', () => {
    const { layer } = counting({ concerns: () => false }, () => true)
    expect(layerFilter([layer], 'uri')(exchangeOf('a'))).toBe(true)
  })

  it('names that callers make up are not remembered without end', () => {
    let looked = 0
    const { layer } = counting({ concerns: () => ++looked < 0 }, () => true)
    const wakes = layerFilter([layer], 'name')
    for (let i = 0; i < 1_001; i++) wakes(exchangeOf(`made-up-${i}`))
    wakes(exchangeOf('made-up-1000'))
    expect(looked).toBe(1_001)
    wakes(exchangeOf('made-up-0'))
    expect(looked).toBe(1_002)
  })
})
