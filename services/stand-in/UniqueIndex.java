import de.bwaldvogel.mongo.backend.AbstractUniqueIndex;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.KeyValue;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A unique index in memory, filled from the documents when a database is opened. (The library's H2 index serialises two keys for every comparison.) */
final class UniqueIndex extends AbstractUniqueIndex<Object> {

    private final Map<KeyValue, Object> positions = new HashMap<>();

    UniqueIndex(String name, List<IndexKey> keys, boolean sparse) {
        super(name, keys, sparse);
    }

    @Override
    protected Object removeDocument(KeyValue key) {
        return positions.remove(key);
    }

    @Override
    protected boolean putKeyPosition(KeyValue key, Object position) {
        return positions.putIfAbsent(key, position) == null;
    }

    @Override
    protected Iterable<Map.Entry<KeyValue, Object>> getIterable() {
        return positions.entrySet();
    }

    @Override
    protected Object getPosition(KeyValue key) {
        return positions.get(key);
    }

    @Override
    public long getCount() {
        return positions.size();
    }

    @Override
    public long getDataSize() {
        return getCount();
    }
}
