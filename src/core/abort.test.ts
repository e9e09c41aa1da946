import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { unlessAborted } from './deadlines.ts'

describe('unlessAborted', () => {
  it('gives what the promise gives, and leaves no listener behind', async () => {
    const stop = new AbortController()
    expect(await unlessAborted(Promise.resolve(7), stop.signal)).toBe(7)
    expect(getEventListeners(stop.signal, 'abort')).toEqual([])
  })

  it('throws what the promise throws', async () => {
    const stop = new AbortController()
    await expect(unlessAborted(Promise.reject(new Error('its own')), stop.signal)).rejects.toThrow('its own')
    expect(getEventListeners(stop.signal, 'abort')).toEqual([])
  })

  it('throws the reason of the signal while the promise goes on, whose failure is then no matter', async () => {
    const stop = new AbortController()
    const { promise, reject } = Promise.withResolvers<never>()
    const waiting = unlessAborted(promise, stop.signal)
    stop.abort(new Error('enough'))
    reject(new Error('too late'))
    await expect(waiting).rejects.toThrow('enough')
  })

  it('does not even wait for a signal that was aborted before', async () => {
    await expect(unlessAborted(new Promise(() => {}), AbortSignal.abort(new Error('before')))).rejects.toThrow('before')
  })

  it('is the promise itself without a signal', () => {
    const promise = Promise.resolve(1)
    expect(unlessAborted(promise, undefined)).toBe(promise)
  })
})
