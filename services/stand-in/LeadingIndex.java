import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.KeyValue;
import de.bwaldvogel.mongo.backend.ValueComparator;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.bson.ObjectId;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * An ordered index on the first field of an index that was asked for, unique or not. It answers equality, {@code $in} and ranges with a superset of the
 * matches, and leaves the rest of the query to the caller. Only plain values are in it; a query for anything else gets no answer from it.
 */
final class LeadingIndex extends Index<Object> {

    static final String NAME_PREFIX = "leading ";

    private final NavigableMap<Object, Set<Object>> positions = new TreeMap<>(ValueComparator.asc());

    LeadingIndex(String name, List<IndexKey> keys) {
        super(name, keys, true);
    }

    String field() {
        return getKeys().get(0).getKey();
    }

    /** The one plain value that a query's condition allows, or null. */
    static Object pinned(Object condition) {
        if (condition instanceof Document operators && operators.size() == 1 && operators.containsKey("$eq")) {
            return pinned(operators.get("$eq"));
        }
        return isPlain(condition) ? condition : null;
    }

    private static boolean isPlain(Object value) {
        return value instanceof String || value instanceof Number || value instanceof Boolean || value instanceof ObjectId || value instanceof Instant
            || value instanceof UUID;
    }

    /** Positions that hold every document whose field meets the condition; null: this index cannot tell. */
    Collection<Object> candidates(Object condition) {
        Object value = pinned(condition);
        if (value != null) {
            return positions.getOrDefault(value, Set.of());
        }
        if (!(condition instanceof Document operators) || operators.isEmpty()) {
            return null;
        }
        if (operators.get("$in") instanceof Collection<?> values) {
            return values.stream().allMatch(LeadingIndex::isPlain) ? union(values) : null;
        }
        return range(operators);
    }

    private Collection<Object> union(Collection<?> values) {
        Set<Object> all = new LinkedHashSet<>();
        values.forEach(value -> all.addAll(positions.getOrDefault(value, Set.of())));
        return all;
    }

    /** Uses one lower and one upper bound; the caller checks whatever else there is. */
    private Collection<Object> range(Document operators) {
        String low = firstPlain(operators, "$gt", "$gte");
        String high = firstPlain(operators, "$lt", "$lte");
        if (low == null && high == null) {
            return null;
        }
        List<Object> all = new ArrayList<>();
        part(operators.get(low), "$gte".equals(low), operators.get(high), "$lte".equals(high)).values().forEach(all::addAll);
        return all;
    }

    private NavigableMap<Object, Set<Object>> part(Object low, boolean withLow, Object high, boolean withHigh) {
        if (low == null) {
            return positions.headMap(high, withHigh);
        }
        if (high == null) {
            return positions.tailMap(low, withLow);
        }
        return ValueComparator.asc().compare(low, high) > 0 ? new TreeMap<>() : positions.subMap(low, withLow, high, withHigh);
    }

    private static String firstPlain(Document operators, String... names) {
        for (String name : names) {
            if (isPlain(operators.get(name))) {
                return name;
            }
        }
        return null;
    }

    private void forEachKey(Document document, Consumer<Object> action) {
        for (KeyValue key : getKeyValues(document)) {
            if (isPlain(key.get(0))) {
                action.accept(key.get(0));
            }
        }
    }

    @Override
    public void add(Document document, Object position, MongoCollection<Object> collection) {
        forEachKey(document, key -> positions.computeIfAbsent(key, absent -> new LinkedHashSet<>()).add(position));
    }

    void forget(Document document, Object position) {
        forEachKey(document, key -> positions.computeIfPresent(key, (same, at) -> {
            at.remove(position);
            return at.isEmpty() ? null : at;
        }));
    }

    /** Does nothing: it does not know the position from the document alone. The collection calls {@link #forget}. */
    @Override
    public Object remove(Document document) {
        return null;
    }

    @Override
    public void updateInPlace(Document before, Document after, Object position, MongoCollection<Object> collection) {
        if (!nullAwareEqualsKeys(before, after)) {
            forget(before, position);
            add(after, position, collection);
        }
    }

    @Override
    public Object getPosition(Document document) {
        return null;
    }

    @Override
    public void checkAdd(Document document, MongoCollection<Object> collection) {
        // It refuses nothing.
    }

    @Override
    public void checkUpdate(Document before, Document after, MongoCollection<Object> collection) {
        // It refuses nothing.
    }

    @Override
    public boolean canHandle(Document query) {
        return false;
    }

    @Override
    public Iterable<Object> getPositions(Document query) {
        throw new UnsupportedOperationException();
    }

    @Override
    public long getCount() {
        return positions.size();
    }

    @Override
    public long getDataSize() {
        return getCount();
    }

    @Override
    public void drop() {
        positions.clear();
    }
}
