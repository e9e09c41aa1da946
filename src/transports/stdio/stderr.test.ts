import { describe, expect, it } from 'vitest'
import { fakeClock } from '../../testing/clock.ts'
import { Stderr } from './command.ts'

describe('Stderr', () => {
  it('is not heard out where it floods: what was left out is counted, and the next line is whole', () => {
    const clock = fakeClock()
    const lines: string[] = []
    const stderr = new Stderr(clock, line => lines.push(line))
    const chunk = Buffer.from(`${'x'.repeat(99)}\n`.repeat(640))
    for (let at = 0; at < 1_000; at++) stderr.push(chunk)
    stderr.push(Buffer.concat([chunk, Buffer.from('one ')]))
    expect(lines.length).toBeLessThan(11_000)
    clock.advance(10_000)
    stderr.push(Buffer.from('half of it\nwhole\n'))
    const heard = lines.filter(line => line.startsWith('x')).length
    expect(lines.slice(-2)).toEqual([`[… ${640_640 - heard + 1} lines left out]`, 'whole'])
  })

  it('keeps the last words of one that floods and dies', () => {
    const stderr = new Stderr(fakeClock())
    const chunk = Buffer.from(`${'x'.repeat(99)}\n`.repeat(640))
    for (let at = 0; at < 100; at++) stderr.push(chunk)
    stderr.push(Buffer.from('Error: no database\n'))
    stderr.end()
    expect(stderr.tail.at(-1)).toBe('Error: no database')
    expect(stderr.tail).toHaveLength(20)
  })
})
