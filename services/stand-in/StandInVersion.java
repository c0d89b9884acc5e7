import de.bwaldvogel.mongo.MongoVersion;
import java.util.List;

/** Says 5.0 (wire version 13): the library's own newest says wire version 8, which today's drivers refuse. The text tells what it really is. */
final class StandInVersion implements MongoVersion {

    @Override
    public List<Integer> getVersionArray() {
        return List.of(5, 0, 0);
    }

    @Override
    public int getWireVersion() {
        return 13;
    }

    @Override
    public String toVersionString() {
        return "5.0.0-stand-in";
    }
}
