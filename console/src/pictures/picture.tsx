/** The frame of a picture: its title, and the same rows as a table for readers of screens, for tests and for copying. */
import { type ReactNode, useId, useState } from 'react'

export interface PictureProps {
  readonly title: string
  /** What stands in place of the picture when somebody asks for it. */
  readonly table: () => ReactNode
  readonly children: ReactNode
}

export function Picture({ title, table, children }: PictureProps): ReactNode {
  const name = useId()
  const [asTable, setAsTable] = useState(false)
  return (
    <figure className="m-0" aria-labelledby={name}>
      <figcaption className="mb-1.5 flex items-baseline justify-between gap-2">
        <span id={name} className="label">
          {title}
        </span>
        <button type="button" className="min-h-6 text-[0.86rem] text-muted underline" onClick={() => setAsTable(!asTable)}>
          {asTable ? 'as picture' : 'as table'}
        </button>
      </figcaption>
      {asTable ? table() : children}
    </figure>
  )
}

export interface PictureTableProps {
  readonly label: string
  readonly columns: readonly string[]
  /** Each row by its key: the cells, of which the first names the row. */
  readonly rows: readonly (readonly [key: string, ...cells: ReactNode[]])[]
}

/** The rows of a picture. It scrolls on its own, so it has a name and takes the focus. */
export function PictureTable({ label, columns, rows }: PictureTableProps): ReactNode {
  const cell = 'py-1 pr-3 text-left align-top'
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable for the arrow keys
    <section aria-label={label} tabIndex={0} className="max-h-[28rem] overflow-auto">
      <table className="w-full tabular-nums">
        <thead className="text-muted">
          <tr>
            {columns.map(title => (
              <th key={title} scope="col" className={`${cell} font-normal`}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([key, name, ...cells]) => (
            <tr key={key} className="border-t border-line">
              <th scope="row" className={`${cell} font-normal`}>
                {name}
              </th>
              {cells.map((content, index) => (
                <td key={columns[index + 1]} className={cell}>
                  {content}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
