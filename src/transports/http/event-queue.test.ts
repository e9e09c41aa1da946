import { describe, expect, it } from 'vitest'
import { EventQueue } from './event-writer.ts'

const all = (queue: EventQueue) => {
  const texts: (string | undefined)[] = []
  for (let text = queue.shift(); text !== undefined; text = queue.shift()) texts.push(text)
  return texts
}

describe('the queue of a slow reader', () => {
  it('gives back in order what was put in, and counts its bytes', () => {
    const queue = new EventQueue()
    for (const text of ['a', 'é', 'a']) queue.add(text, undefined)
    expect(queue.bytes).toBe(4)
    expect(all(queue)).toEqual(['a', 'é', 'a'])
    expect([queue.bytes, queue.size]).toEqual([0, 0])
  })

  it('replaces what waits under the same merge key, at the end', () => {
    const queue = new EventQueue()
    queue.add('progress 1', 'p')
    queue.add('log', undefined)
    queue.add('progress 22', 'p')
    expect(queue.bytes).toBe('log'.length + 'progress 22'.length)
    expect(all(queue)).toEqual(['log', 'progress 22'])
  })

  it('does not merge with what has already left', () => {
    const queue = new EventQueue()
    queue.add('progress 1', 'p')
    expect(queue.shift()).toBe('progress 1')
    queue.add('progress 2', 'p')
    expect(all(queue)).toEqual(['progress 2'])
  })
})
