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
