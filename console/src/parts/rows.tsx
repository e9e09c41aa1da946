/**
 * A long list of which only the rows in sight are in the document. Arrows, j and k move, Enter opens. The rows are options of a list box, so
 * that a screen reader hears where it is.
 */
import { useVirtualizer } from '@tanstack/react-virtual'
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useId, useMemo, useRef } from 'react'

export interface RowsProps<T> {
  readonly label: string
  readonly items: readonly T[]
  readonly keyOf: (item: T) => string
  readonly selected?: string | undefined
  readonly select: (item: T, by: 'key' | 'press') => void
  readonly draw: (item: T) => ReactNode
  /** Called when the end is near. */
  readonly more?: (() => void) | undefined
  /** Height of a row before it is measured. */
  readonly height?: number
  /** All rows have this height: none is measured, which makes fast scrolling cheap. */
  readonly fixed?: boolean
  /** The newest row is the last one: it stays in sight while the reader is at the end. */
  readonly follow?: boolean
  /** `Enter` on the selected row. */
  readonly open?: ((item: T) => void) | undefined
}

/** Rows drawn beyond the edge, so that a fast scroll shows no gap. */
const beyond = 12

export function Rows<T>({
  label,
  items,
  keyOf,
  selected,
  select,
  draw,
  more,
  height = 32,
  fixed = false,
  follow = false,
  open,
}: RowsProps<T>): ReactNode {
  const box = useRef<HTMLDivElement>(null)
  const list = useId()
  // The same function while the items are the same: with another one the places of all rows are worked out again.
  const getItemKey = useCallback((index: number) => keyOf(items[index] as T), [items, keyOf])
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: beyond,
    getItemKey,
  })
  const visible = rows.getVirtualItems()
  const last = visible.at(-1)?.index ?? 0
  useEffect(() => {
    if (items.length > 0 && last >= items.length - beyond) more?.()
  }, [last, items.length, more])
  const at = useMemo(() => items.findIndex(item => keyOf(item) === selected), [items, keyOf, selected])
  useEnd(box, rows, items.length, follow)
  // Chosen elsewhere, in a picture or by an address: it comes into sight. Rows that come and go do not move it.
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at)
  }, [selected])
  const press = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      j: at + 1,
      ArrowUp: at - 1,
      k: at - 1,
      Home: 0,
      End: items.length - 1,
    }
    if (event.key === 'Enter' && open !== undefined && at >= 0) {
      event.preventDefault()
      return open(items[at] as T)
    }
    const target = steps[event.key]
    if (target === undefined || items.length === 0) return
    event.preventDefault()
    const index = Math.min(items.length - 1, Math.max(0, target))
    rows.scrollToIndex(index)
    select(items[index] as T, 'key')
  }
  return (
    <div
      ref={box}
      role="listbox"
      aria-label={label}
      aria-activedescendant={visible.some(({ index }) => index === at) ? `${list}-${at}` : undefined}
      tabIndex={0}
      onKeyDown={press}
      className="min-h-0 flex-1 overflow-auto"
    >
      <div className="relative" style={{ height: rows.getTotalSize() }}>
        {visible.map(({ index, key, start }) => {
          const item = items[index] as T
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the list box, which has the focus
            <div
              key={key}
              {...(!fixed && { ref: rows.measureElement })}
              data-index={index}
              id={`${list}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === at}
              aria-posinset={index + 1}
              aria-setsize={items.length}
              className={`absolute inset-x-0 top-0 cursor-pointer border-b border-line ${index === at ? 'bg-accent-soft' : 'hover:bg-hover'}`}
              style={{ transform: `translateY(${start}px)`, ...(fixed && { height }) }}
              onClick={() => select(item, 'press')}
            >
              {draw(item)}
            </div>
          )
        })}
      </div>
    </div>
  )
}

/** How far from the end a reader still counts as being there. */
const nearEnd = 40

/** Keeps the end in sight where the reader was at the end before more rows came. */
function useEnd(
  box: { readonly current: HTMLElement | null },
  rows: { scrollToIndex(index: number, options?: { align: 'end' }): void },
  count: number,
  follow: boolean,
): void {
  const atEnd = useRef(true)
  useEffect(() => {
    const element = box.current
    const look = () => {
      if (element) atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < nearEnd
    }
    element?.addEventListener('scroll', look, { passive: true })
    return () => element?.removeEventListener('scroll', look)
  }, [box])
  useEffect(() => {
    if (follow && atEnd.current && count > 0) rows.scrollToIndex(count - 1, { align: 'end' })
  }, [follow, count, rows])
}
