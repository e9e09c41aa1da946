/** What the pictures of the console compute: positions in a waterfall, lanes of checkpoints, columns of causes. */
import { describe, expect, it } from 'vitest'
import { placeCauses } from './causes-layout.ts'
import { type FoldedRun, foldRuns, type LaneNode, lanesOf, mostLanes } from './lanes-layout.ts'
import { criticalPath, scaleOf, ticksOf, tickText } from './waterfall-scale.ts'

describe('a waterfall', () => {
  const step = (id: string, from: number, to: number, waits = false) => ({ id, from, to, waits })

  it('is as wide as its steps take', () => {
    const { position } = scaleOf([step('a', 1000, 1100), step('b', 1100, 1200)])
    expect([1000, 1050, 1100, 1200].map(position)).toEqual([0, 0.25, 0.5, 1])
  })

  it('folds the time in which it waited for a person, and only then', () => {
    const hour = 3_600_000
    const { segments, position } = scaleOf([step('a', 0, 100), step('ask', 100, hour, true), step('b', hour, hour + 100)])
    expect(segments.map(({ folded }) => folded)).toEqual([false, true, false])
    expect(position(100)).toBeCloseTo(0.43)
    expect(position(hour)).toBeCloseTo(0.57)
    expect(scaleOf([step('a', 0, 100), step('b', 300, 400)]).segments).toHaveLength(1)
  })

  it('counts a call as no work while somebody is asked about it', () => {
    const call = { ...step('call', 100, 10_200), pauses: [{ from: 110, to: 10_100 }] }
    const { segments } = scaleOf([step('model', 0, 100), call, step('ask', 110, 10_100, true)])
    expect(segments.map(({ from, to, folded }) => [from, to, folded])).toEqual([
      [0, 110, false],
      [110, 10_100, true],
      [10_100, 10_200, false],
    ])
  })

  it('has ticks at round distances from its beginning, none of them in a fold', () => {
    expect(ticksOf(scaleOf([step('a', 5000, 5390)]), 5)).toEqual([5000, 5100, 5200, 5300])
    const folded = scaleOf([step('a', 0, 100), step('b', 10_000, 10_100)])
    expect(ticksOf(folded, 5).filter(at => at > 100 && at < 10_000)).toEqual([])
  })

  it('counts long times in minutes, and says each tick exactly', () => {
    const ticks = ticksOf(scaleOf([step('a', 0, 200_000)]), 5)
    expect(ticks.map(tickText)).toEqual(['0', '1:00', '2:00', '3:00'])
    expect([50, 1500, 90_000, 3_661_000].map(tickText)).toEqual(['50 ms', '1.5 s', '1:30', '1:01:01'])
  })

  it('marks the steps that decided when it ended', () => {
    const steps = [step('hook', 0, 10), step('infer', 10, 50), step('slow', 50, 90), step('fast', 50, 60), step('last', 90, 100)]
    expect([...criticalPath(steps)].sort()).toEqual(['hook', 'infer', 'last', 'slow'])
  })
})

describe('lanes of checkpoints', () => {
  const node = (id: string, parent: string | null): LaneNode => ({ id, parent })

  it('keep one line of descent in one lane, and a branch beside it until they meet', () => {
    const rows = lanesOf([node('c4', 'c2'), node('c3', 'c1'), node('c2', 'c1'), node('c1', null)])
    expect(rows.map(({ lane }) => lane)).toEqual([0, 1, 0, 0])
    expect(rows[1]).toEqual({ lane: 1, above: [], through: [0], below: true })
    expect(rows[3]).toEqual({ lane: 0, above: [0, 1], through: [], below: false })
  })

  it('share the last place where there are too many', () => {
    const nodes = [...Array.from({ length: 40 }, (_, index) => node(`leaf ${index}`, 'root')), node('root', null)]
    const rows = lanesOf(nodes)
    expect(Math.max(...rows.map(({ lane }) => lane))).toBe(mostLanes - 1)
    expect(rows.at(-1)?.above).toHaveLength(mostLanes)
  })

  it('fold a long run without a branch, but never the head', () => {
    const line = Array.from({ length: 30 }, (_, index) => node(`c${30 - index}`, index === 29 ? null : `c${29 - index}`))
    const shown = foldRuns(line, ({ id }) => id === 'c15').map(each => (isFold(each) ? each.folded.length : each.id))
    expect(shown).toEqual(['c30', 14, 'c15', 13, 'c1'])
  })

  const isFold = (each: LaneNode | FoldedRun<LaneNode>): each is FoldedRun<LaneNode> => 'folded' in each
})

describe('a graph of causes', () => {
  it('puts every cause left of what came of it', () => {
    const places = placeCauses(
      ['call', 'event', 'answer', 'turn'],
      [
        { from: 'event', to: 'turn' },
        { from: 'turn', to: 'call' },
        { from: 'call', to: 'answer' },
        { from: 'turn', to: 'answer' },
      ],
    )
    expect(['event', 'turn', 'call', 'answer'].map(id => places.get(id)?.column)).toEqual([0, 1, 2, 3])
  })

  it('is placed too where causes run in a circle', () => {
    const places = placeCauses(
      ['a', 'b'],
      [
        { from: 'a', to: 'b' },
        { from: 'b', to: 'a' },
        { from: 'a', to: 'gone' },
      ],
    )
    expect(places.size).toBe(2)
  })

  it('orders a column so that its lines do not cross', () => {
    const places = placeCauses(
      ['a', 'b', 'of b', 'of a'],
      [
        { from: 'a', to: 'of a' },
        { from: 'b', to: 'of b' },
      ],
    )
    expect(places.get('of a')?.row).toBe(places.get('a')?.row)
  })
})
