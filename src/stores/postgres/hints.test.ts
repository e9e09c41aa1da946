import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { Client } from './pg.ts'
import { Hints } from './store.ts'

/** A connection whose notices end when the test says so. */
function slowClient() {
  const notices: (() => void)[] = []
  const heard = new EventEmitter()
  const client = Object.assign(new EventEmitter(), {
    connect: async () => {},
    end: async () => {},
    query: async (text: string) => {
      if (text.startsWith('NOTIFY'))
        await new Promise<void>(resolve => {
          notices.push(resolve)
          heard.emit('notice')
        })
      return { rows: [{ pid: 1 }] }
    },
  })
  const next = (): Promise<unknown> => new Promise(resolve => heard.once('notice', resolve))
  return { client: client as unknown as Client, notices, next }
}

describe('wake-ups between processes', () => {
  it('are one at a time on their connection, and what is told meanwhile is told after it', async () => {
    const { client, notices, next } = slowClient()
    const hints = new Hints(
      () => client,
      'channel',
      () => {},
    )
    await hints.start()
    const first = next()
    hints.tell()
    await first
    hints.tell()
    // Longer than what is gathered into one notice.
    await new Promise(resolve => setTimeout(resolve, 30))
    expect(notices).toHaveLength(1)
    const second = next()
    notices[0]?.()
    await second
    expect(notices).toHaveLength(2)
    notices[1]?.()
    await hints.close()
  })
})
